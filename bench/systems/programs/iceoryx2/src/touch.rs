// SPDX-License-Identifier: Apache-2.0
//! The touch rule, as bench/harness/touch.hpp states it: the same words, stored and added by the same kind of loop.

/// What message number `message` of a sender is filled with.
pub fn pattern(sender: u64, message: u64) -> u64 {
    (message + 1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(sender << 56)
}

/// Stores every byte and returns the sum of what it stored.
///
/// # Safety
/// `size` bytes at `to` can be written.
pub unsafe fn write_all(to: *mut u8, size: usize, word: u64) -> u64 {
    let words = size / 8;
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        store_avx2(to, words, word);
    } else {
        store(to, words, word);
    }
    #[cfg(not(target_arch = "x86_64"))]
    store(to, words, word);
    let mut last = [0; 8];
    let rest = size % 8;
    last[..rest].copy_from_slice(&word.to_ne_bytes()[..rest]);
    std::ptr::copy_nonoverlapping(last.as_ptr(), to.add(words * 8), rest);
    (words as u64)
        .wrapping_mul(word)
        .wrapping_add(u64::from_ne_bytes(last))
}

/// Loads every byte: the sum of all words, the last one filled up with zeros.
pub fn sum_all(message: &[u8]) -> u64 {
    let (words, rest) = message.split_at(message.len() / 8 * 8);
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        return unsafe { add_avx2(words) }.wrapping_add(u64::from_ne_bytes(last));
    }
    add(words).wrapping_add(u64::from_ne_bytes(last))
}

#[inline(always)]
unsafe fn store(to: *mut u8, words: usize, word: u64) {
    for i in 0..words {
        to.cast::<u64>().add(i).write_unaligned(word);
    }
}

#[inline(always)]
fn add(words: &[u8]) -> u64 {
    words.chunks_exact(8).fold(0, |sum: u64, word| {
        sum.wrapping_add(u64::from_ne_bytes(word.try_into().unwrap()))
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn store_avx2(to: *mut u8, words: usize, word: u64) {
    store(to, words, word);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_avx2(words: &[u8]) -> u64 {
    add(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_what_is_read() {
        for size in [1, 7, 8, 64, 4099] {
            let mut memory = vec![0u8; size + 1];
            let written = unsafe { write_all(memory.as_mut_ptr(), size, pattern(3, 4)) };
            assert_eq!(sum_all(&memory[..size]), written);
            assert_eq!(memory[size], 0);
        }
    }
}
