//! `include_dir!` notices a changed file but not a new one, so Cargo is told to watch the folder.

fn main() {
    println!("cargo::rerun-if-changed=sql");
}
