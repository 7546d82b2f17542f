// The guard in a `match` lives to its end, where the same mutex is locked again.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let numbers = Arc::new(Mutex::new(vec![1]));
    let same = numbers.clone();
    let worker = thread::spawn(move || match same.lock().unwrap().pop() {
        Some(number) => same.lock().unwrap().push(number + 1), // blocks here
        None => {}
    });
    worker.join().unwrap(); // hangs here
    println!("{:?}", numbers);
}
