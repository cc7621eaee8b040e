"""Comparing traces by meaning, from what sessions hold: values are matched by what they compute, not by name.

`graph` numbers the values of a stage, `alignment` finds what is different in two stages, `sessions` compares whole
sessions.
"""
