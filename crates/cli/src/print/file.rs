//! Files that the user names to be written: whole or not at all, and none that is there is replaced unless asked for.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use unspool::{Error, Result};

/// Where a result is put: `target`, or what it links to.
///
/// # Errors
///
/// When something else than a file is there, which a result must not replace, or its folder does not exist.
pub fn place(target: &Path) -> Result<PathBuf> {
    if target == Path::new("-") {
        return Err(Error::invalid_input(
            "--out - is no file; leave --out away to print the results (generate prints them with --json)",
        ));
    }
    match fs::canonicalize(target) {
        Err(_) if target.symlink_metadata().is_ok() => Err(Error::invalid_input(
            "a result would replace this link, which leads to no regular file; give another name",
        )
        .at(target.display())),
        Err(_) => match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                Err(Error::invalid_input("the folder to write into does not exist; make it first").at(parent.display()))
            }
            _ => Ok(target.to_path_buf()),
        },
        Ok(real) if real.is_file() => Ok(real),
        Ok(_) => Err(Error::invalid_input("a result would replace this, which is no regular file; give another name")
            .at(target.display())),
    }
}

/// Refuses a `target` that is there already; `how` says what to do to replace it.
///
/// # Errors
///
/// When it is there.
pub fn refuse_existing(target: &Path, how: &str) -> Result<()> {
    match target.symlink_metadata() {
        Ok(_) => {
            Err(Error::invalid_input(format!("this file is there already; give another name, or {how} to replace it"))
                .at(target.display()))
        }
        Err(_) => Ok(()),
    }
}

/// Writes `text` to `target`, or to what it links to: whole or not at all. A file that is there is replaced only when
/// `replace` says so; the message tells `how` to say that.
///
/// # Errors
///
/// When something is there that must not be replaced, or the file cannot be written.
pub fn write(target: &Path, text: &str, replace: bool, how: &str) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::io("this file could not be written").at(target.display()).because(error);
    let place = place(target)?;
    if !replace {
        refuse_existing(&place, how)?;
    }
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = new_file(folder).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    let put = if replace { new.persist(&place) } else { new.persist_noclobber(&place) };
    put.map(drop).map_err(|error| failed(error.error))
}

/// A new file in `folder` with the permissions that any new file of the user has.
fn new_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_replaced_only_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("talk.json");
        write(&file, "first", false, "use /save!").unwrap();
        let error = write(&file, "second", false, "use /save!").unwrap_err().to_string();
        assert!(error.contains("there already") && error.contains("use /save! to replace it"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        write(&file, "second", true, "use /save!").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing partial is left");
        assert!(write(folder.path(), "x", true, "").unwrap_err().to_string().contains("no regular file"));
    }
}
