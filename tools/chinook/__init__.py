"""Reports on the Chinook sample database, each compared with SQL written by hand.

`python tools/chinook FOLDER` takes the folder that holds the two dumps; see `__main__`.
"""
