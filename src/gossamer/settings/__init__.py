"""What did the user ask for: defaults, file, environment, flags?

`model.Settings` has every setting, `load` finds them.
"""
