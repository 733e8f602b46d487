"""OpenSSH's client: connections, host keys, and what its errors mean."""
