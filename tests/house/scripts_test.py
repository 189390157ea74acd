"""Tests the install scripts and summary.py of scripts/. Small shell scripts (stand-ins) take the place of apt-get,
dpkg-query, python3, sudo and id."""

import unittest

from stand_ins import ScriptTest

APT, SUDO = 'echo "apt-get $*" >> CALLS', 'echo sudo >> CALLS; exec "$@"'
UPDATE, INSTALL = "apt-get update", "apt-get install -y --no-install-recommends "
LACKS = 'case "$4" in %s) exit 1;; esac; echo installed'


class InstallDeps(ScriptTest):
    script = "scripts/install_deps.sh"
    tools = ["mktemp", "rm", "cat", "env", "sh"]

    def test_what_is_missing_is_installed(self):
        lacks, web = {"dpkg-query": LACKS % "catch2"}, {"dpkg-query": LACKS % "chromium*|*selenium"}
        user, fails = {"id": "echo 1000"}, {"apt-get": APT + '; [ "$1" = update ] || { echo "no package"; exit 100; }'}
        old = {"dpkg-query": '[ "$4" = catch2 ] && echo config-files || echo installed'}
        both, browser = ([UPDATE, INSTALL + what] for what in ("catch2", "chromium chromium-driver python3-selenium"))
        for words, system, programs, code, calls, said in [
                ("", "debian", {}, 0, [], ""), ("", "debian", old, 0, both, ""), ("", "debian", lacks, 0, both, ""),
                ("--command", "debian", lacks, 0, [], ""), ("--all", "debian", lacks, 2, [], "usage"),
                ("", "debian", {**lacks, "apt-get": APT + '; [ "$1" != update ]'}, 0, both, "could not be updated"),
                ("", "debian", {**lacks, **fails}, 1, both, "no package\ninstall_deps: apt-get could not install: c"),
                ("", "debian", {**lacks, **user}, 1, [], "apt-get install catch2"), ("", "ubuntu", web, 0, [], ""),
                ("", "debian", web, 0, browser, ""), ("", "debian", {**web, **fails}, 0, browser, "no browser"),
                ("", "debian", {**web, **user}, 0, [], "apt-get install chromium"),
                ("--python", "debian", {"dpkg-query": "exit 1", **user}, 1, [], "zlib1g-dev python3 python3-dev"),
                ("", "debian", {**lacks, **user, "sudo": SUDO}, 0, ["sudo", both[0], "sudo", both[1]], "")]:
            with self.subTest(words=words, system=system, programs=programs):
                self.log.unlink(missing_ok=True)
                for name, body in {"dpkg-query": LACKS % "no", "apt-get": APT, "id": "echo 0", **programs}.items():
                    self.stand_in(name, body)
                (self.root / "os-release").write_text(f"ID={system}\n")
                run = self.run_script(*words.split(), OS_RELEASE=str(self.root / "os-release"))
                self.assertEqual((run.returncode, self.calls(), run.stderr > ""), (code, calls, said > ""), run.stderr)
                self.assertIn(said, run.stderr)
        (self.bin / "apt-get").unlink()
        self.assertEqual(self.run_script().returncode, 0)


class InstallEngines(ScriptTest):
    script = "scripts/install_engines.sh"
    tools = ["cat", "cp", "env", "grep", "mkdir", "mktemp", "mv", "rm", "sh", "tail", "touch"]
    files = ["LICENSE", "ortools.libs/libz.so.1", "ortools/.libs/libortools.so.9", "release"]
    pip = """[ -e BIN/pip ] || exit 1; [ "$3" = --version ] && exit 0
echo "$*" >> CALLS; while [ "$1" != --target ]; do shift; done
mkdir -p "$2" && cd "$2" && mkdir -p ortools/.libs ortools/sat ortools.libs ortools-1.dist-info/licenses
touch ortools/.libs/libortools.so.9 ortools.libs/libz.so.1 ortools-1.dist-info/licenses/LICENSE"""

    def install(self, *arguments, **environment):
        return self.run_script(*arguments, HOME=str(self.root), TMPDIR=str(self.root / "tmp"), **environment)

    def check_installed(self, folder):
        self.assertEqual(sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()), self.files)
        self.assertEqual(list((self.root / "tmp").iterdir()), [])

    def test_the_libraries_are_installed_once_and_a_refusal_leaves_the_old_release(self):
        pip, folder = self.pip.replace("BIN", str(self.bin)), self.root / ".local/share/cairn/engines"
        for name, body in [("id", "echo 1000"), ("sudo", SUDO), ("python3", pip),
                           ("apt-get", f'{APT}; [ "$1" = update ] || echo > {self.bin}/pip')]:
            self.stand_in(name, body)
        (self.root / "tmp").mkdir()
        for _ in range(2):
            self.assertEqual(self.install().stderr, "")
            self.check_installed(folder)
            self.assertEqual(self.calls()[:-1], ["sudo", UPDATE, "sudo", INSTALL + "python3-pip"])
        self.assertRegex(self.calls()[-1], r"--no-deps .* ortools==\d[\d.]+$")
        for place, words, variables in [("a b", [self.root / "a b"], {"CAIRN_ENGINES": "/proc/x"}),
                                        ("b", [], {"CAIRN_ENGINES": str(self.root / "b"), "XDG_DATA_HOME": "/proc/x"}),
                                        ("c/cairn/engines", [], {"XDG_DATA_HOME": str(self.root / "c")})]:
            self.install(*words, **variables)
            self.check_installed(self.root / place)
        self.assertEqual([self.install(word).returncode for word in ("--help", "engines")], [2, 2])
        (folder / "release").write_text("9.0\n")
        self.stand_in("apt-get", "exit 100")
        for python3, words in [("[ $3 = --version ] || echo done", "no libraries"), ("exit 1", "install python3-pip"),
                               ("[ $3 = --version ] || { echo ERROR; echo; exit 1; }", "install .*: ERROR")]:
            self.stand_in("python3", python3)
            self.check_refusal(self.install(), words)
            self.check_installed(folder)
        self.stand_in("python3", pip)
        self.check_refusal(self.install(str(folder / "release/below")), "cannot create the folder")
        (folder / "ortools/.libs/libold.so").touch()
        self.install()
        self.check_installed(folder)


class InstallCudnn(ScriptTest):
    script = "scripts/install_cudnn.sh"
    pip = """[ "$3" = --version ] && exit 0
[ -z "${NO_NETWORK:-}" ] || { echo "ERROR: no network" >&2; exit 1; }
echo "$*" >> CALLS; while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nvidia/cudnn/include" "$2/nvidia/cudnn/lib" && cd "$2/nvidia/cudnn"
touch include/cudnn_graph.h; [ -n "${EMPTY:-}" ] || touch lib/libcudnn.so.9"""

    def test_the_wheel_is_installed_once_and_not_where_the_toolkit_has_cudnn(self):
        folder = self.root / "a cudnn"
        self.stand_in("python3", self.pip)
        self.stand_in("nvcc", "echo Cuda compilation tools, release 13.0, V13.0.1")
        for variable, words in [("NO_NETWORK", "no network"), ("EMPTY", "has not the files")]:
            run = self.run_script(folder, **{variable: "1"})
            self.assertEqual((run.returncode, run.stdout, folder.exists()), (1, "", False))
            self.assertRegex(run.stderr.splitlines()[-1], f"^install_cudnn: .*{words}")
        before = len(self.calls())
        for _ in range(2):
            self.assertEqual(self.run_script(folder).stdout, f"{folder}\n")
            self.assertEqual(len(self.calls()), before + 1)
        self.assertRegex(self.calls()[-1], r"--no-deps .* nvidia-cudnn-cu13==9\.[\d.]+$")
        for file in ("include/cudnn_graph.h", "lib64/libcudnn.so.9"):
            (self.root / file).parent.mkdir()
            (self.root / file).touch()
        self.assertEqual((self.run_script(folder).stdout, len(self.calls())), ("", before + 1))
        self.assertEqual(self.run_script("--help").returncode, 2)


class InstallPython(ScriptTest):
    script = "scripts/install_python.sh"

    def test_pinned_releases_are_installed_once_others_replaced_and_refusals_leave_nothing(self):
        folder = self.root / "an env"
        self.stand_in("python3", """if [ "$1" = -c ]; then exit ${OLD:-0}; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit ${NO_VENV:-0}; fi
[ -z "${NO_NETWORK:-}" ] || { echo "ERROR: no network" >&2; exit 1; }; echo "$*" >> CALLS""")
        for words, variable in [("no network", "NO_NETWORK"), ("environment", "NO_VENV"), ("3.10 or newer", "OLD")]:
            self.check_refusal(self.run_script(folder, **{variable: "1"}), words)
            self.assertFalse(folder.exists())
        for _ in range(2):
            self.assertEqual((self.run_script(folder).stderr, len(self.calls())), ("", 1))
        self.assertRegex(self.calls()[0], r" nanobind==\d.* scikit-build-core==\d.* numpy==\d.* networkx==\d")
        (folder / "packages").write_text("nanobind==0.1")
        self.run_script(folder)
        self.assertEqual((len(self.calls()), "0.1" in (folder / "packages").read_text()), (2, False))
        self.assertEqual(self.run_script("--all").returncode, 2)


class Summary(ScriptTest):
    script = "scripts/summary.py"

    def test_outcomes_are_counted_and_failures_shown(self):
        good, other = '<testcase name="good" status="run"/>', '<testcase name="bad" status="%s">%s</testcase>'
        failed = other % ("fail", "<system-out>1 != 2</system-out>")
        skipped, missing = (other % ("notrun", f'<skipped message="{why}"/>') for why in ("SKIP_REGULAR", "Unable to"))
        for cases, code, words in [(good + skipped, 0, "skipped: bad\n1 passed, 0 failed, 1 skipped\n"),
                                   (good + failed, 1, "FAILED: bad (fail)\n  1 != 2\n1 passed, 1 failed, 0 skipped\n"),
                                   (good + missing, 1, "1 passed, 1 failed"), ("<", 1, "1 failed"), ("", 1, "0 p")]:
            (self.root / "tests.xml").write_text(f"<testsuite>{cases}</testsuite>")
            run = self.run_script(self.root / "tests.xml")
            self.assertEqual((run.returncode, words in run.stdout), (code, True), run.stdout.replace("skipped:", "skipped"))


if __name__ == "__main__":
    unittest.main()
