"""What do the headers of an answer say: its type, its dates?"""
