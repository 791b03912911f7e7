def test() -> int:
    """x"""
    return 0
