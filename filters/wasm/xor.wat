;; Flips bits: eight bytes at a time, in place.  Undoing is doing it again.
;; The key is the first number in the parameters, {"key": 90}; without one it is 90.
(module
  (memory (export "memory") 1)
  (global $room (mut i32) (i32.const 0))
  (global $key (mut i64) (i64.const 0x5a5a5a5a5a5a5a5a))

  ;; one buffer, behind the first page, as large as the host asks
  (func (export "alloc") (param $size i32) (result i32)
    (global.set $room (i32.const 65536))
    (if (i32.eq (i32.const -1)
                (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))
      (then unreachable))
    (global.get $room))

  (func (export "start") (param $at i32) (param $size i32) (param $direction i32) (result i32)
    (local $end i32) (local $byte i32) (local $value i32) (local $seen i32)
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.lt_u (local.get $byte) (i32.const 10))
          (then
            (local.set $seen (i32.const 1))
            (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10)) (local.get $byte)))
            (br $next)))
        (br_if $done (local.get $seen))
        (br $next)))
    (if (local.get $seen)
      (then (global.set $key
        (i64.mul (i64.const 0x0101010101010101) (i64.extend_i32_u (i32.and (local.get $value) (i32.const 255)))))))
    (i32.const 0))

  (func (export "feed") (param $at i32) (param $size i32) (result i64)
    (local $place i32) (local $end i32)
    (local.set $place (local.get $at))
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $place) (local.get $end)))
        ;; what lies behind the last byte is flipped too, and is nobody's
        (i64.store (local.get $place) (i64.xor (i64.load (local.get $place)) (global.get $key)))
        (local.set $place (i32.add (local.get $place) (i32.const 8)))
        (br $next)))
    (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $size))))

  (func (export "finish") (result i64) (i64.const 0)))
