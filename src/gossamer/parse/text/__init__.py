"""What of a page is for reading, in which language, from when? And by what is its text compared: `fingerprint`."""
