def typecheck() -> int:
    """x"""
    return 0
