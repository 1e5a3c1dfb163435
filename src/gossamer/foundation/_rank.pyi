from array import array

def sort_unique(numbers: array[int], /) -> int: ...
def link_rank(
    links: array[int],
    teleport: array[float],
    self_share: array[float],
    rank: array[float],
    damping: float,
    tolerance: float,
    max_steps: int,
    /,
) -> int: ...
