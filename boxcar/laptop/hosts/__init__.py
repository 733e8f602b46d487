"""Other machines: OpenSSH's client, folders to and from them, who they are, what they are asked."""
