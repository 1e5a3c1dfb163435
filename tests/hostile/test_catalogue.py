"""Every case of the catalogue has its test: the table, and that it is complete. And all of it in one crawl."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, summary_of
from tests.hostile.crawling import NOT_SEEDS, WHOLE, Aftermath, whole_server
from tests.servers.web import RunningWeb

SIZES = {"N": 22, "Z": 7, "R": 12, "H": 16, "T": 7, "B": 10, "S": 6, "C": 3, "W": 9, "D": 3, "L": 3}
GROWTH_BYTES = 200_000_000
BARE_BYTES = 27_000_000  # what a crawl of one page has

TESTS: dict[str, tuple[str, ...]] = {
    "N01": ("hostile.test_network:test_n01_endless_headers",),
    "N02": ("hostile.test_network:test_n02_one_endless_header_line",),
    "N03": ("hostile.test_network:test_n03_an_endless_body_is_cut_at_the_cap_and_says_so",),
    "N04": ("hostile.test_network:test_n04_a_dripping_body",),
    "N05": ("hostile.test_network:test_n05_dripping_headers",),
    "N06": ("hostile.test_network:test_n06_silence",),
    "N07": ("hostile.test_network:test_n07_content_length_larger_than_the_body",),
    "N08": ("hostile.test_network:test_n08_content_length_smaller_than_the_body",),
    "N09": ("hostile.test_network:test_n09_absurd_content_length_is_read_to_the_end",),
    "N10": ("hostile.test_network:test_n10_the_same_content_length_twice",),
    "N11": ("hostile.test_network:test_n11_transfer_encoding_wins",),
    "N12": ("hostile.test_network:test_n12_a_bad_chunk_size",),
    "N13": ("hostile.test_network:test_n13_cut_before_the_last_chunk",),
    "N14": ("hostile.test_network:test_n14_http_0_9",),
    "N15": ("hostile.test_network:test_n15_another_protocol",),
    "N16": ("hostile.test_network:test_n16_endless_interim_answers",),
    "N17": ("hostile.test_network:test_n17_switching_protocols",),
    "N18": ("hostile.test_network:test_n18_a_body_that_must_not_be_there",),
    "N19": ("hostile.test_network:test_n19_not_modified_unasked",),
    "N20": ("hostile.test_network:test_n20_controls_in_a_header",),
    "N21": ("hostile.test_network:test_n21_odd_statuses",),
    "N22": ("hostile.test_network:test_n22_reset_in_the_middle",),
    "Z01": ("hostile.test_network:test_z01_a_gzip_bomb_is_cut_at_the_cap",),
    "Z02": ("hostile.test_network:test_z02_ten_codings",),
    "Z03": ("hostile.test_network:test_z03_a_brotli_bomb",),
    "Z04": ("hostile.test_network:test_z04_a_huge_zstd_window",),
    "Z05": ("hostile.test_network:test_z05_says_gzip_and_is_plain",),
    "Z06": ("hostile.test_network:test_z06_a_cut_gzip_stream",),
    "Z07": ("hostile.test_network:test_z07_an_unknown_coding_is_stored_and_not_read",),
    "R01": ("hostile.test_redirects:test_r01_a_redirect_to_itself",),
    "R02": ("hostile.test_redirects:test_r02_an_endless_chain_ends_after_five",),
    "R03": ("hostile.test_redirects:test_r03_a_file",),
    "R04": ("hostile.test_redirects:test_r04_cloud_metadata",),
    "R05": (
        "hostile.test_redirects:test_r05_odd_spellings_of_private_addresses",
        "hostile.test_redirects:test_r05_localhost_with_a_dot",
    ),
    "R06": ("hostile.test_redirects:test_r06_line_breaks_in_location",),
    "R07": ("hostile.test_redirects:test_r07_scripts_and_data",),
    "R08": ("hostile.test_redirects:test_r08_missing_empty_and_relative",),
    "R09": ("hostile.test_redirects:test_r09_the_robots_of_the_target_are_asked",),
    "R10": ("hostile.test_redirects:test_r10_a_location_too_long",),
    "R11": ("hostile.test_redirects:test_r11_bytes_in_location",),
    "R12": ("hostile.test_redirects:test_r12_a_refresh_loop_is_a_link_seen_before",),
    "H01": ("hostile.test_pages:test_h01_a_million_links",),
    "H02": ("hostile.test_pages:test_h02_deep_nesting",),
    "H03": ("hostile.test_pages:test_h03_what_is_no_utf8_can_be_written",),
    "H04": ("hostile.test_pages:test_h04_nul",),
    "H05": ("hostile.test_pages:test_h05_utf16_that_says_utf8",),
    "H06": ("hostile.test_pages:test_h06_only_the_labels_of_the_web",),
    "H07": ("hostile.test_pages:test_h07_only_http_is_followed",),
    "H08": ("hostile.test_pages:test_h08_the_first_base_that_can_be_one",),
    "H09": ("hostile.test_pages:test_h09_credentials_are_dropped",),
    "H10": ("hostile.test_pages:test_h10_one_key_for_all_spellings_of_a_name",),
    "H11": ("hostile.test_pages:test_h11_urls_too_long_are_dropped",),
    "H12": ("hostile.test_pages:test_h12_a_title_cannot_act_on_a_terminal",),
    "H13": ("hostile.test_pages:test_h13_binary_is_not_read_as_html",),
    "H14": ("hostile.test_pages:test_h14_a_malformed_pdf",),
    "H15": (
        "hostile.test_pages:test_h15_soft_404",
        "hostile.test_pages:test_h15_a_host_with_honest_errors_is_never_probed",
    ),
    "H16": ("hostile.test_pages:test_h16_an_endless_camera",),
    "T01": ("hostile.test_traps:test_t01_a_calendar",),
    "T02": ("hostile.test_traps:test_t02_session_ids",),
    "T03": ("hostile.test_traps:test_t03_a_path_that_repeats_itself",),
    "T04": ("hostile.test_traps:test_t04_a_farm_of_hosts",),
    "T05": (
        "hostile.test_traps:test_t05_combinations_without_new_content_are_held",
        "hostile.test_traps:test_t05_numbered_pages_with_new_content_are_no_trap",
        "hostile.test_traps:test_t05_what_is_held_can_be_seen_and_released",
    ),
    "T06": ("hostile.test_traps:test_t06_endless_text_leaves_others_their_turn",),
    "T07": ("hostile.test_traps:test_t07_fragments_and_case",),
    "B01": ("hostile.test_rules:test_b01_an_endless_robots_txt_counts_as_far_as_it_is_read",),
    "B02": ("hostile.test_rules:test_b02_a_robots_loop_is_as_if_there_were_none",),
    "B03": ("hostile.test_rules:test_b03_robots_that_fail_forbid_everything_for_now",),
    "B04": ("hostile.test_rules:test_b04_no_robots_allow_everything",),
    "B05": ("hostile.test_rules:test_b05_robots_that_say_too_many_requests_are_waited_for",),
    "B06": ("hostile.test_rules:test_b06_robots_in_html_say_nothing",),
    "B07": ("hostile.test_rules:test_b07_a_bomb_of_wildcards",),
    "B08": ("hostile.test_rules:test_b08_robots_that_never_come",),
    "B09": (
        "hostile.test_rules:test_b09_robots_elsewhere_count_here",
        "hostile.test_rules:test_b09_what_another_host_forbids_is_not_requested_as_a_robots_txt",
    ),
    "B10": ("hostile.test_rules:test_b10_absurd_delays",),
    "S01": ("hostile.test_rules:test_s01_an_index_that_lists_itself",),
    "S02": ("hostile.test_rules:test_s02_entities_are_not_expanded",),
    "S03": ("hostile.test_rules:test_s03_nothing_else_is_opened",),
    "S04": ("hostile.test_rules:test_s04_a_sitemap_bomb",),
    "S05": ("hostile.test_rules:test_s05_a_sitemap_speaks_for_its_own_domain",),
    "S06": ("hostile.test_rules:test_s06_deep_nesting",),
    "C01": (
        "hostile.test_rules:test_c01_cookies_are_never_sent",
        "fetch.test_cookies:test_a_bomb_of_cookies_stays_small",
    ),
    "C02": (
        "hostile.test_rules:test_c02_the_whole_host_waits_as_long_as_it_says",
        "hostile.test_rules:test_c02_garbage_means_a_growing_wait",
    ),
    "C03": (
        "hostile.test_writing:test_c03_a_sound_entity_tag_is_kept",
        "hostile.test_writing:test_c03_no_other_is_echoed",
        "hostile.test_writing:test_c03_the_content_decides_what_has_changed",
        "hostile.test_writing:test_c03_a_date_is_echoed_only_if_it_can_be_one",
    ),
    "W01": ("hostile.test_writing:test_w01_file_names_come_from_hashes",),
    "W02": ("hostile.test_writing:test_w02_nothing_adds_a_record",),
    "W03": ("hostile.test_writing:test_w03_copies_are_stored_once",),
    "W04": (
        "e2e.test_faults:test_a_full_disk_stops_the_crawl_with_status_3_and_it_goes_on_when_there_is_room",
        "archive.test_archive_writer:test_w04_no_room_leaves_the_file_as_it_was",
    ),
    "W05": ("e2e.test_chaos:test_nothing_is_lost_or_doubled_whatever_ends_the_process",),
    "W06": ("hostile.test_writing:test_w06_a_clock_that_jumps_changes_no_wait",),
    "W07": ("hostile.test_writing:test_w07_titles_are_text_wherever_they_are_shown",),
    "W08": ("hostile.test_writing:test_w08_addresses_are_data",),
    "W09": ("e2e.test_crawl:test_a_folder_has_one_owner",),
    "D01": (
        "hostile.test_names:test_d01_a_name_is_resolved_once_and_that_address_is_asked",
        "hostile.test_names:test_d01_a_name_that_leads_inside_is_blocked",
        "hostile.test_names:test_d01_the_peer_is_checked_again_at_the_connection",
    ),
    "D02": ("hostile.test_names:test_d02_many_addresses_and_a_deadline",),
    "D03": (
        "hostile.test_names:test_d03_a_dead_ipv6_address_costs_nothing",
        "hostile.test_names:test_d03_the_next_address_is_tried_soon",
    ),
    "L01": (
        "hostile.test_tls:test_l01_expired",
        "hostile.test_tls:test_l01_self_signed",
        "hostile.test_tls:test_l01_for_another_host",
        "hostile.test_tls:test_l01_tls_1_0",
        "hostile.test_tls:test_l01_null_ciphers",
        "hostile.test_tls:test_l01_a_crawl_never_falls_back_to_http",
    ),
    "L02": (
        "hostile.test_tls:test_l02_a_stalled_handshake",
        "hostile.test_tls:test_l02_closed_without_close_notify",
    ),
    "L03": ("hostile.test_tls:test_l03_tricks_of_http_2_end_under_our_caps",),
}


def test_every_case_has_a_test() -> None:
    wanted = {f"{letter}{number:02d}" for letter, count in SIZES.items() for number in range(1, count + 1)}
    assert len(wanted) == 98
    assert set(TESTS) == wanted


@pytest.mark.parametrize("case", TESTS)
def test_the_tests_are_there(case: str) -> None:
    for place in TESTS[case]:
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(f"tests.{module}"), name))


def test_the_whole_catalogue_grows_memory_by_less_than_200_mb(after: Aftermath) -> None:
    assert after.summary["peak_private_bytes"] < BARE_BYTES + GROWTH_BYTES
    assert after.summary["finished"] == "parked"
    assert not list((after.out / "events").glob("crash.txt"))


def test_healthy_hosts_beside_the_catalogue_are_crawled_whole(tmp_path: Path) -> None:
    plan = preset("plain", domains=8, pages=160)
    hostile = [name for name in WHOLE.scripts if name not in NOT_SEEDS and not name.startswith(("t", "h01"))]
    with RunningWeb(plan) as web, whole_server(plan=plan) as server:
        seeds = [*web.seeds(), *(f"http://{name}.test:{server.port}/" for name in hostile)]
        options = crawl_options(web, tmp_path / "out", 5)
        options[1] = server.dns_address
        done = run("crawl", *seeds, *options, "--timeout", "0.4", "--retry-wait", "0.02", "--max-wait", "1")
        assert done.returncode == 0, done.stderr
        assert summary_of(done.stdout)["pages"] > 160
        report = web.judge()
    assert report.coverage == 1.0, report.render()
