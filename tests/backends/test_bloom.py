from __future__ import annotations

from gossamer.backends.local.bloom import SeenFilter


def _ids(start: int, stop: int) -> list[bytes]:
    return [n.to_bytes(16, "big") for n in range(start, stop)]


def test_what_was_added_is_never_denied_however_many_layers() -> None:
    seen = SeenFilter(first_layer_urls=100)
    ids = _ids(0, 5000)
    for url_id in ids:
        seen.add(url_id)
    assert all(url_id in seen for url_id in ids)


def test_strangers_are_rarely_taken_for_known() -> None:
    seen = SeenFilter(first_layer_urls=1000)
    for url_id in _ids(0, 20_000):
        seen.add(url_id)
    wrong = sum(url_id in seen for url_id in _ids(1_000_000, 1_050_000))
    assert wrong / 50_000 < 0.005  # 0.1 % a layer


def test_it_is_filled_at_once_from_what_is_known() -> None:
    seen = SeenFilter(first_layer_urls=10)
    seen.fill(30_000, iter(_ids(0, 30_000)))
    assert all(url_id in seen for url_id in _ids(0, 30_000))
    wrong = sum(url_id in seen for url_id in _ids(1_000_000, 1_050_000))
    assert wrong / 50_000 < 0.002


def test_ten_million_urls_take_eighteen_megabytes() -> None:
    assert 17e6 < SeenFilter(first_layer_urls=10_000_000).size_in_bytes < 18.5e6
