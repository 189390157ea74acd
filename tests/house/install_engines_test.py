"""scripts/install_engines.sh against stand-ins for python3 -m pip, apt-get, sudo and id."""

import unittest

from stand_ins import SCRIPTS, ScriptTest

RELEASE = next(line.split("=")[1] for line in (SCRIPTS / "install_engines.sh").read_text().splitlines()
               if line.startswith("release="))

# `python3 -m pip install ... --target FOLDER ...`: what the wheel holds, of which the libraries alone are used.
PIP = """
echo "python3 $*" >> CALLS
[ "$3" = --version ] && exit 0
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/ortools/.libs" "$2/ortools/sat/python" "$2/ortools.libs" "$2/ortools-RELEASE.dist-info/licenses"
echo engine > "$2/ortools/.libs/libortools.so.9"
echo needed > "$2/ortools.libs/libz.so.1"
echo terms > "$2/ortools-RELEASE.dist-info/licenses/LICENSE"
""".replace("RELEASE", RELEASE)
FILES = ["LICENSE", "ortools.libs/libz.so.1", "ortools/.libs/libortools.so.9", "release"]


class InstallEngines(ScriptTest):
    script = "install_engines.sh"
    tools = ["cat", "cp", "env", "grep", "mkdir", "mktemp", "mv", "rm", "sh", "tail"]

    def setUp(self):
        super().setUp()
        self.home, self.temporary = self.root / "home", self.root / "tmp"
        for path in [self.home, self.temporary]:
            path.mkdir()
        self.default = self.home / ".local/share/cairn/engines"
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "echo apt-get $* >> CALLS")
        self.stand_in("python3", PIP)

    def run_script(self, *arguments, **environment):
        return super().run_script(*arguments, HOME=str(self.home), TMPDIR=str(self.temporary), **environment)

    def files_of(self, folder):
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    def test_the_libraries_lie_as_in_the_wheel_and_nothing_else_is_there(self):
        run, calls = self.run_script()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.files_of(self.default), FILES)
        self.assertEqual((self.default / "release").read_text(), RELEASE + "\n")
        self.assertIn(f"ortools=={RELEASE}", calls[-1])
        self.assertIn("--no-deps", calls[-1])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_nothing_is_done_when_the_release_is_there(self):
        self.run_script()
        self.log.unlink()
        run, calls = self.run_script()
        self.assertEqual((run.returncode, run.stdout, run.stderr, calls), (0, "", "", []))

    def test_another_release_is_replaced(self):
        old = self.default / "ortools/.libs/libold.so"
        old.parent.mkdir(parents=True)
        old.write_text("old")
        (self.default / "release").write_text("9.0\n")
        run, _ = self.run_script()
        self.assertEqual((run.returncode, self.files_of(self.default)), (0, FILES))

    def test_the_folder_is_that_of_the_argument_then_that_of_the_environment(self):
        named, chosen, data = (self.home / name for name in ["a folder", "chosen", "data"])
        self.assertEqual(self.run_script(str(named), CAIRN_ENGINES=str(chosen))[0].returncode, 0)
        self.assertEqual((self.files_of(named), chosen.exists()), (FILES, False))
        self.assertEqual(self.run_script(CAIRN_ENGINES=str(chosen))[0].returncode, 0)
        self.assertEqual(self.files_of(chosen), FILES)
        self.assertEqual(self.run_script(XDG_DATA_HOME=str(data))[0].returncode, 0)
        self.assertEqual(self.files_of(data / "cairn/engines"), FILES)
        self.assertFalse(self.default.exists())

    def test_an_option_is_answered_with_the_usage(self):
        run, calls = self.run_script("--help")
        self.assertEqual((run.returncode, calls), (2, []))
        self.assertIn("[FOLDER]", run.stderr)

    def test_a_missing_pip_is_installed(self):
        # python3 has pip once apt-get has installed it.
        self.stand_in("python3", f'[ -e {self.bin}/pip ] || exit 1\n{PIP}')
        self.stand_in("apt-get", f'echo "apt-get $*" >> CALLS; [ "$1" = update ] || echo > {self.bin}/pip')
        run, calls = self.run_script()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("Installing with apt-get: python3-pip\n", run.stdout)
        self.assertEqual(calls[:2], ["apt-get update", "apt-get install -y --no-install-recommends python3-pip"])
        self.assertEqual(self.files_of(self.default), FILES)

    def test_sudo_only_without_root(self):
        self.stand_in("python3", f'[ -e {self.bin}/pip ] || exit 1\n{PIP}')
        self.stand_in("apt-get", f'echo > {self.bin}/pip')
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", 'echo sudo >> CALLS; exec "$@"')
        run, calls = self.run_script()
        self.assertEqual((run.returncode, calls.count("sudo")), (0, 2))

    def check_failure(self, text):
        run, _ = self.run_script()
        self.check_refusal(run, text)
        self.assertEqual(self.files_of(self.home), [])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_no_pip_and_no_way_to_get_it_is_one_line(self):
        self.stand_in("python3", "exit 1")
        self.stand_in("apt-get", "exit 100")
        self.check_failure("apt-get could not install python3-pip")
        (self.bin / "apt-get").unlink()
        self.check_failure("install pip for python3")

    def test_a_pip_that_fails_is_one_line_with_its_reason(self):
        self.stand_in("python3", '[ "$3" = --version ] || { echo trying; echo "ERROR: no network"; echo; exit 1; }')
        self.check_failure(f"pip could not install ortools=={RELEASE}: ERROR: no network")
        self.stand_in("python3", '[ "$3" = --version ] || exit 1')
        self.check_failure(f"pip could not install ortools=={RELEASE}")

    def test_a_failure_leaves_the_old_release_as_it_was(self):
        self.run_script()
        (self.default / "release").write_text("9.0\n")
        self.stand_in("python3", '[ "$3" = --version ]')
        self.assertEqual(self.run_script()[0].returncode, 1)
        self.assertEqual(self.files_of(self.default), FILES)

    def test_a_wheel_without_libraries_is_one_line(self):
        self.stand_in("python3", '[ "$3" = --version ] || echo done')
        self.check_failure("no libraries")

    def test_a_folder_that_cannot_be_made_is_one_line(self):
        (self.home / ".local").write_text("")
        run, _ = self.run_script()
        self.check_refusal(run, "cannot create the folder")


if __name__ == "__main__":
    unittest.main()
