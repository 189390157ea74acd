"""scripts/install_deps.sh against stand-ins for dpkg-query, apt-get, sudo and id."""

import unittest

from stand_ins import ScriptTest

ALL_INSTALLED = "echo installed"
CATCH2_MISSING = '[ "$4" = catch2 ] && exit 1; echo installed'
BROWSER_MISSING = 'case "$4" in chromium*|*selenium) exit 1;; esac; echo installed'
CATCH2_REMOVED = '[ "$4" = catch2 ] && echo config-files || echo installed'


class InstallDeps(ScriptTest):
    script = "install_deps.sh"
    tools = ["mktemp", "rm", "cat", "env", "sh"]

    def setUp(self):
        super().setUp()
        self.distribution = "debian"
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", 'echo "apt-get $*" >> CALLS')

    def run_script(self, *arguments):
        system = self.root / "os-release"
        system.write_text(f"ID={self.distribution}\nVERSION=1\n")
        return super().run_script(*arguments, OS_RELEASE=str(system))

    def test_nothing_is_done_when_all_is_there(self):
        self.stand_in("dpkg-query", ALL_INSTALLED)
        run, calls = self.run_script()
        self.assertEqual((run.returncode, run.stdout, run.stderr, calls), (0, "", "", []))

    def test_the_command_alone_needs_no_tests(self):
        self.stand_in("dpkg-query", CATCH2_MISSING)
        run, calls = self.run_script("--command")
        self.assertEqual((run.returncode, run.stdout, calls), (0, "", []))
        self.assertEqual(self.run_script("--all")[0].returncode, 2)

    def test_a_package_of_python_needs_its_headers_and_no_tests(self):
        self.stand_in("dpkg-query", "exit 1")
        _, calls = self.run_script("--python")
        installed = calls[1].split()
        for package in ("g++", "python3-dev", "python3-venv"):
            self.assertIn(package, installed)
        self.assertNotIn("catch2", installed)

    def test_what_is_missing_is_installed_after_an_update(self):
        for query in [CATCH2_MISSING, CATCH2_REMOVED]:
            with self.subTest(query=query):
                self.log.unlink(missing_ok=True)
                self.stand_in("dpkg-query", query)
                run, calls = self.run_script()
                self.assertEqual((run.returncode, run.stdout), (0, "Installing with apt-get: catch2\n"))
                self.assertEqual(calls, ["apt-get update", "apt-get install -y --no-install-recommends catch2"])

    def test_lists_that_cannot_be_updated_are_used_as_they_are(self):
        self.stand_in("dpkg-query", CATCH2_MISSING)
        self.stand_in("apt-get", 'echo "apt-get $*" >> CALLS; [ "$1" != update ]')
        run, calls = self.run_script()
        self.assertEqual((run.returncode, len(calls)), (0, 2))

    def test_a_failed_install_is_an_error_that_shows_why(self):
        self.stand_in("dpkg-query", CATCH2_MISSING)
        self.stand_in("apt-get", '[ "$1" = update ] || { echo "no such package"; exit 100; }')
        run, _ = self.run_script()
        self.assertEqual(run.returncode, 1)
        self.assertIn("no such package", run.stderr)
        self.assertIn("could not install: catch2", run.stderr)

    def test_a_browser_comes_where_it_is_a_package_and_is_no_reason_to_fail(self):
        self.stand_in("dpkg-query", BROWSER_MISSING)
        run, calls = self.run_script()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(calls[1].split()[-3:], ["chromium", "chromium-driver", "python3-selenium"])
        self.assertEqual(self.run_script("--command")[1], calls)
        self.stand_in("apt-get", '[ "$1" = update ]')
        run, _ = self.run_script()
        self.assertEqual(run.returncode, 0)
        self.assertIn("no browser, whose tests will be skipped", run.stderr)
        self.stand_in("id", "echo 1000")
        self.assertEqual(self.run_script()[0].returncode, 0)
        self.distribution = "ubuntu"
        self.assertEqual(self.run_script()[0].stderr, "")

    def test_sudo_only_without_root(self):
        self.stand_in("dpkg-query", CATCH2_MISSING)
        self.stand_in("id", "echo 1000")
        run, calls = self.run_script()
        self.assertEqual((run.returncode, calls), (1, []))
        self.assertIn("apt-get install catch2", run.stderr)
        self.stand_in("sudo", 'echo sudo >> CALLS; exec "$@"')
        run, calls = self.run_script()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(calls.count("sudo"), 2)

    def test_a_system_without_apt_is_told_what_is_needed(self):
        (self.bin / "apt-get").unlink()
        run, _ = self.run_script()
        self.assertEqual(run.returncode, 0)
        self.assertIn("libopenblas-dev", run.stderr)


if __name__ == "__main__":
    unittest.main()
