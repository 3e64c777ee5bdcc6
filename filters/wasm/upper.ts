// ASCII letters in upper case.  Build:
//   npx asc upper.ts --outFile upper.wasm --runtime stub -O3 --use abort=
let room: usize = 0;

// Where the host puts up to `size` bytes before each `feed`.
export function alloc(size: i32): usize {
  room = heap.alloc(size);
  return room;
}

// Answers with where the output lies: address in the upper half, length in the lower one.
export function feed(at: usize, size: i32): i64 {
  for (let place = at; place < at + size; place++) {
    const letter = load<u8>(place);
    if (letter >= 97 && letter <= 122) store<u8>(place, letter - 32);
  }
  return ((at as i64) << 32) | (size as i64);
}

export function finish(): i64 {
  return 0;
}
