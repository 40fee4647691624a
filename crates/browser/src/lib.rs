//! A headless Chromium or Chrome that opens a page and tells what became of it, for tests.
//!
//! Two variables of the environment matter: with `ONRUSH_REQUIRE_BROWSER` set a missing browser is a
//! failure, and `ONRUSH_SCREENSHOTS=FOLDER` keeps a picture of each page that was opened.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names under which a browser that knows `--headless` may be installed.
const NAMES: [&str; 6] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// An argument with which a page finds that its reader wants it dark.
pub const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// Five seconds of the page's own clock, which runs ahead while the page waits for nothing else.
const CLOCK: &str = "--virtual-time-budget=5000";

/// One that is installed here.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
}

/// A page after five seconds of its own clock.
#[derive(Debug)]
pub struct Look {
    /// The document as its scripts have left it.
    pub document: String,
    /// What it said in its console, a line each.
    pub console: Vec<String>,
}

impl Browser {
    /// The first that is on the path; None, and a line about it, where there is none.
    ///
    /// # Panics
    ///
    /// There is none, and `ONRUSH_REQUIRE_BROWSER` is set.
    #[must_use]
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = find_in(&path).map(|program| Self { program });
        if found.is_none() {
            let told = format!("no browser on the path (one of {})", NAMES.join(", "));
            assert!(std::env::var_os("ONRUSH_REQUIRE_BROWSER").is_none(), "{told}: install one");
            eprintln!("left out: {told}");
        }
        found
    }

    /// Opens an address with further arguments. A picture is kept as `NAME.png` where they are wanted.
    ///
    /// # Errors
    ///
    /// The browser cannot be started, or ends with an error.
    pub fn look(&self, address: &str, name: &str, more: &[&str]) -> io::Result<Look> {
        let profile = tempfile::tempdir()?;
        if let Some(folder) = std::env::var_os("ONRUSH_SCREENSHOTS") {
            let picture = Path::new(&folder).join(format!("{name}.png"));
            let argument = format!("--screenshot={}", picture.display());
            self.run(profile.path(), &[more, &[&argument, address]].concat())?;
        }
        let (document, told) =
            self.run(profile.path(), &[more, &["--dump-dom", address]].concat())?;
        let said = told.lines().filter(|line| line.contains(":CONSOLE"));
        Ok(Look { document, console: said.map(str::to_owned).collect() })
    }

    /// How many sheets of paper a page takes.
    ///
    /// # Errors
    ///
    /// As with [`Browser::look`], and when the print cannot be read.
    pub fn sheets(&self, address: &str) -> io::Result<usize> {
        let folder = tempfile::tempdir()?;
        let print = folder.path().join("print.pdf");
        let argument = format!("--print-to-pdf={}", print.display());
        self.run(folder.path(), &["--no-pdf-header-footer", &argument, address])?;
        let bytes = std::fs::read(print)?;
        Ok(String::from_utf8_lossy(&bytes).matches("/Type /Page\n").count())
    }

    /// Both its outputs.
    fn run(&self, profile: &Path, arguments: &[&str]) -> io::Result<(String, String)> {
        let output = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--hide-scrollbars", "--enable-logging=stderr", CLOCK])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(arguments)
            .output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (document, told) = (text(output.stdout), text(output.stderr));
        if output.status.success() {
            Ok((document, told))
        } else {
            let program = self.program.display();
            Err(io::Error::other(format!("{program}: {}: {told}", output.status)))
        }
    }
}

fn find_in(path: &OsStr) -> Option<PathBuf> {
    let places: Vec<PathBuf> = std::env::split_paths(path).collect();
    let all = NAMES.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.into_iter().find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(page: &str) -> Option<Look> {
        let browser = Browser::find()?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        Some(browser.look(&format!("file://{}", file.display()), "page", &[]).unwrap())
    }

    #[test]
    fn a_script_has_run_when_the_document_is_told() {
        let page = "<p id=a></p><script>setTimeout(() => a.textContent = 'later', 3000)</script>";
        let Some(look) = looked_at(page) else { return };
        assert!(look.document.contains("later"), "{}", look.document);
        assert_eq!(look.console, Vec::<String>::new());
    }

    #[test]
    fn a_page_break_begins_a_new_sheet() {
        let Some(browser) = Browser::find() else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::write(&file, "<p>one<p style='break-before: page'>two").unwrap();
        assert_eq!(browser.sheets(&format!("file://{}", file.display())).unwrap(), 2);
    }

    #[test]
    fn what_a_page_says_and_its_errors_are_told() {
        let Some(look) = looked_at("<script>console.log('hello'); missing()</script>") else {
            return;
        };
        assert!(look.console[0].contains("hello"), "{:?}", look.console);
        assert!(look.console[1].contains("missing is not defined"), "{:?}", look.console);
    }
}
