"""Which links and which text does a PDF have?

`pdf` reads links itself, `deep` has all of it read by a child process.
"""
