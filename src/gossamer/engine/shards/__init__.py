"""What comes into memory when a shard is taken, and what is forgotten when it is released?"""
