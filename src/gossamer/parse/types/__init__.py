"""Which type and which charset does an answer have, whatever its header says?"""
