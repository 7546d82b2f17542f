// A second read of an RwLock, while a writer waits for the first to end.
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

fn main() {
    let number = Arc::new(RwLock::new(1));
    let first = number.read().unwrap();
    let same = number.clone();
    let writer = thread::spawn(move || *same.write().unwrap() = 2); // blocks here
    thread::sleep(Duration::from_millis(300));
    let second = number.read().unwrap(); // hangs here
    println!("{}", *first + *second);
    drop((first, second));
    writer.join().unwrap();
}
