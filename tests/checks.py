"""What the scripts of several folders of tests check with."""


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)
