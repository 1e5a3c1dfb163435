"""Completion as a shell does it, the manual page, and help."""

from __future__ import annotations

import subprocess

import pytest

from gossamer.cli.main import main
from gossamer.cli.verbs import VERBS


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(script: str, *words: str) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    quoted = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _gossamer; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{script}\n{call}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.engine("shells")
def test_bash_completes_verbs_options_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    bash = script(capsys, "bash")
    assert completed(bash, "gossamer", "res") == ["resume"]
    assert set(completed(bash, "gossamer", "")) == set(VERBS)
    assert completed(bash, "gossamer", "crawl", "--revisit-r") == ["--revisit-rule"]
    assert completed(bash, "gossamer", "crawl", "--revisit-rule", "") == ["adaptive", "steps"]
    assert "crawl" in completed(bash, "gossamer", "help", "cr")
    assert completed(bash, "gossamer", "status", "crawls/") == []  # the shell's own: names of files


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_other_shells_have_all_verbs_and_options(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    text = script(capsys, shell)
    assert all(verb in text for verb in VERBS)
    assert "revisit-rule" in text


@pytest.mark.engine("shells")
@pytest.mark.parametrize(("shell", "check"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_accept_their_script(capsys: pytest.CaptureFixture[str], shell: str, check: list[str]) -> None:
    text = script(capsys, shell)
    done = subprocess.run([*check, "/dev/stdin"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "invalid choice: 'csh'" in capsys.readouterr().err


def test_the_manual_page_has_every_verb_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH GOSSAMER 1")
    for verb in VERBS:
        assert f".SS {verb.replace('-', chr(92) + '-')}" in page
    assert "\\-\\-revisit\\-rule" in page


@pytest.mark.engine("shells")
def test_groff_accepts_the_manual_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man"]) == 0
    page = capsys.readouterr().out
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-K", "utf8"], input=page, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_of_a_verb_is_what_the_verb_itself_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "traps"]) == 0
    told = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["traps", "--help"])
    assert told == capsys.readouterr().out
    assert main(["help"]) == 0
    everything = capsys.readouterr().out
    assert all(f"\n  {verb} " in everything for verb in VERBS)
    assert "exit status:" in everything
    assert main(["help", "crawll"]) == 2
    assert "did you mean 'crawl'?" in capsys.readouterr().err
