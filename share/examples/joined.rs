// SPDX-License-Identifier: BSD-3-Clause
// The program of joined.c in Rust: plain processes meet in a folder, or at host:port, and take the
// means of a tensor over all of them, ten times. What is declared here is what it needs of
// gradflow.h; a library of another version refuses the options by their size.
//
//	rustc -L LIBDIR joined.rs -o joined
//	for r in 0 1; do ./joined /shared/job-1 $r 2 & done; wait
use std::ffi::{CStr, CString};
use std::mem::{size_of, zeroed};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null_mut;

const COUNT: usize = 1 << 20;
const ALL: usize = usize::MAX; // GRADFLOW_ALL
const F32: c_int = 0; // GRADFLOW_F32
const MEET_PLACE: c_int = 2; // GRADFLOW_MEET_PLACE

#[repr(C)]
struct Tensor {
    name: *const c_char,
    dimensions: usize,
    shape: [usize; 8],
}

#[repr(C)]
struct Gradient {
    tensor: usize,
    data: *mut f32,
    count: usize,
    dtype: c_int,
}

#[repr(C)]
struct Options {
    size: usize,
    dtypes: *const c_int,
    plan: *const c_char,
    plan_text: *const c_char,
    messages: *const usize,
    nmessages: usize,
    ways: *const c_char,
    epoch_steps: usize,
    timeout_s: f64,
    join_s: f64,
    momentum: f64,
    meet: c_int,
    rank: c_int,
    ranks: c_int,
    former: c_int,
    flat: c_int,
    place: *const c_char,
    transport: *const c_char,
    allgather: *const c_void,
    allgather_ctx: *mut c_void,
    on_device: c_int,
    device: c_int,
    stream: *mut c_void,
}

#[link(name = "gradflow")]
extern "C" {
    fn gradflow_error() -> *const c_char;
    fn gradflow_exchange_options_init(options: *mut Options, size: usize) -> c_int;
    fn gradflow_exchange_open(
        tensors: *const Tensor,
        ntensors: usize,
        options: *const Options,
        x: *mut *mut c_void,
    ) -> c_int;
    fn gradflow_exchange_post(x: *mut c_void, gradients: *const Gradient, n: usize) -> c_int;
    fn gradflow_exchange_wait(x: *mut c_void, tensor: usize) -> c_int;
    fn gradflow_exchange_close(x: *mut c_void);
}

fn check(status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(gradflow_error()) }.to_string_lossy().into_owned())
}

struct Exchange(*mut c_void);

impl Exchange {
    fn open(tensors: &[Tensor], place: &str, rank: c_int, ranks: c_int) -> Result<Self, String> {
        let place = CString::new(place).unwrap(); // until open returns
        let mut options: Options = unsafe { zeroed() };
        let mut x = null_mut();
        unsafe {
            check(gradflow_exchange_options_init(&mut options, size_of::<Options>()))?;
            options.meet = MEET_PLACE;
            options.place = place.as_ptr();
            (options.rank, options.ranks) = (rank, ranks);
            options.timeout_s = 10.0;
            check(gradflow_exchange_open(tensors.as_ptr(), tensors.len(), &options, &mut x))?;
        }
        Ok(Exchange(x))
    }

    // The mean comes back in the same place. The borrow lasts as long as the library has the
    // memory: this returns when the step has ended.
    fn mean(&mut self, grads: &mut [f32]) -> Result<(), String> {
        let made = Gradient { tensor: 0, data: grads.as_mut_ptr(), count: grads.len(), dtype: F32 };
        unsafe {
            check(gradflow_exchange_post(self.0, &made, 1))?;
            check(gradflow_exchange_wait(self.0, ALL))
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        unsafe { gradflow_exchange_close(self.0) }
    }
}

fn train(place: &str, rank: c_int, ranks: c_int) -> Result<f32, String> {
    let mut shape = [0; 8];
    shape[0] = COUNT;
    let tensor = Tensor { name: b"w\0".as_ptr().cast(), dimensions: 1, shape };
    let mut grads = vec![0.0; COUNT]; // outlives the exchange, which has it after a failure
    let mut x = Exchange::open(&[tensor], place, rank, ranks)?;
    for step in 1..=10 {
        grads.fill((rank + step) as f32);
        x.mean(&mut grads)?;
    }
    Ok(grads[COUNT - 1])
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let numbers: Vec<c_int> = args.iter().skip(2).filter_map(|a| a.parse().ok()).collect();
    if args.len() != 4 || numbers.len() != 2 {
        eprintln!("usage: joined PLACE RANK RANKS");
        std::process::exit(2);
    }
    match train(&args[1], numbers[0], numbers[1]) {
        Ok(mean) if numbers[0] == 0 => println!("the mean of the last step is {mean}"),
        Ok(_) => (),
        Err(why) => {
            eprintln!("joined: {why}");
            std::process::exit(1);
        }
    }
}
