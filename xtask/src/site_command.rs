//! `cargo xtask site`: the documents as a site in `target/site/book`, by mdBook, which is installed into the target
//! folder if this machine has none.

use std::path::Path;

use crate::commands::{Step, run_all};
use crate::tool::Tool;
use crate::{site, source};

const MDBOOK: Tool<'_> = Tool {
    name: "mdbook",
    version: "0.5.4",
    // It runs for seconds: what it takes to be built counts for more.
    flags: &["--no-default-features", "--features", "search", "--debug"],
};

/// Documents keep their own names, and nothing in them is replaced.
const BOOK: &str = "\
[book]
title = \"Onrush\"
language = \"en\"

[build]
use-default-preprocessors = false

[output.html.print]
enable = false
";

/// Makes the site, and fails if a link in it leads nowhere.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let Some(path) = MDBOOK.path(root)? else {
        return Err("site: mdbook could not be installed; give one on the path".to_owned());
    };
    let folder = root.join("target/site");
    let told = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| told(&folder, error))?;
    }
    for (name, text) in site::files(&source::read_all(root)?) {
        let file = folder.join("src").join(&name);
        let parent = file.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(|error| told(parent, error))?;
        let written = match text {
            Some(text) => std::fs::write(&file, text),
            None => std::fs::copy(root.join(&name), &file).map(drop),
        };
        written.map_err(|error| told(&file, error))?;
    }
    std::fs::write(folder.join("book.toml"), BOOK).map_err(|error| told(&folder, error))?;
    let build = Step::program(root, "site", "mdbook", &["build", "target/site"]);
    if run_all(&[build.with("PATH", &path)]) > 0 {
        return Err("site: it could not be made".to_owned());
    }
    let book = folder.join("book");
    let mut broken = Vec::new();
    pages(&book, "", &mut |page, html| {
        broken.extend(site::broken(page, html, &|path| book.join(path).is_file()));
    })?;
    for link in &broken {
        eprintln!("{link}");
    }
    match broken.len() {
        0 => {
            println!("the site begins at {}", book.join("index.html").display());
            Ok(())
        }
        count => Err(format!("site: {count} links lead nowhere")),
    }
}

/// Every page of the site that was made of a document; reports of studies are pages of their own.
fn pages(folder: &Path, prefix: &str, visit: &mut dyn FnMut(&str, &str)) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let entry = entry.map_err(told)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages(&entry.path(), &format!("{name}/"), visit)?;
        } else if name.ends_with(".html") {
            visit(&name, &std::fs::read_to_string(entry.path()).map_err(told)?);
        }
    }
    Ok(())
}
