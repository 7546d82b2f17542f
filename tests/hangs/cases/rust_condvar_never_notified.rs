// A thread waits for a flag that no other thread sets.
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn main() {
    let ready = Arc::new((Mutex::new(false), Condvar::new()));
    let same = ready.clone();
    let worker = thread::spawn(move || {
        let (flag, changed) = &*same;
        drop(changed.wait_while(flag.lock().unwrap(), |is_set| !*is_set).unwrap()); // blocks here
    });
    worker.join().unwrap(); // hangs here
    println!("{:?}", ready.0);
}
