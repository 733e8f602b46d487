"""The program that runs one attempt: staged unpacked, and importing what it needs and no more."""
