;; Gives back what it is fed: what the way through the sandbox itself costs.
(module
  (memory (export "memory") 1)

  (func (export "alloc") (param $size i32) (result i32)
    (if (i32.eq (i32.const -1)
                (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))
      (then unreachable))
    (i32.const 65536))

  (func (export "feed") (param $at i32) (param $size i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $size))))

  (func (export "finish") (result i64) (i64.const 0)))
