#!/usr/bin/env python3
"""Makes the checkpoints of this folder: one tiny random llama for each way to quantize weights.

    python make.py [NAME...]    # needs numpy, torch, safetensors, compressed-tensors, bitsandbytes

case.json holds the SHA-256 of every quantized matrix, [out, in] in little-endian f32 with +0 for -0, as the
scheme's own library decodes it in f32: compressed_tensors for ct-*, bitsandbytes for bnb-*; for gptq-*, awq and
fp8-*, whose dequantization is one line, that line on the integers before they were packed.
"""
import hashlib, json, os, sys
import numpy as np
import torch
from safetensors.torch import save_file

HIDDEN, FFN, VOCAB, HEADS, KV, DIM = 64, 96, 32, 2, 2, 16
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": DIM,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "vocab_size": VOCAB, "tie_word_embeddings": True,
    "hidden_act": "silu", "rope_theta": 10000.0, "torch_dtype": "float16",
}
SHAPES = {
    "self_attn.q_proj": (HEADS * DIM, HIDDEN), "self_attn.k_proj": (KV * DIM, HIDDEN), "self_attn.v_proj": (KV * DIM, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * DIM), "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN),
}


def weights(rng, shape):
    """Random weights with a few large ones."""
    w = rng.standard_normal(shape) * 0.12
    w[rng.random(shape) < 0.01] *= 4
    return torch.from_numpy(w.astype(np.float32))


# Packing: as AutoGPTQ and AutoAWQ do it.

def stream(values, bits):
    """Packs integers [n, m] along the first dimension into a stream of bits of 32-bit words."""
    n, m = values.shape
    out = np.zeros((n * bits // 32, m), dtype=np.uint32)
    for i in range(n):
        word, shift = divmod(i * bits, 32)
        v = values[i].astype(np.uint64) << np.uint64(shift)
        out[word] |= (v & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        if shift + bits > 32:
            out[word + 1] |= (v >> np.uint64(32)).astype(np.uint32)
    return torch.from_numpy(out.view(np.int32).copy())


def affine(w, bits, group, sym, g_idx=None):
    """Integers [out, in], scales and zeros [groups, out] in f16."""
    out, cols = w.shape
    g_idx = np.arange(cols) // group if g_idx is None else g_idx
    groups, top = int(g_idx.max()) + 1, 2 ** bits - 1
    q, scales, zeros = np.zeros((out, cols), np.int64), np.zeros((groups, out), np.float16), np.zeros((groups, out), np.int64)
    for g in range(groups):
        part = w[:, g_idx == g].numpy()
        lo, hi = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if sym:
            hi = np.maximum(-lo, hi)
            lo = -hi
        s = ((hi - lo) / top).astype(np.float16)
        z = np.full(out, (top + 1) // 2) if sym else np.clip(np.rint(-lo / s.astype(np.float32)), 0, top).astype(np.int64)
        scales[g], zeros[g] = s, z
        q[:, g_idx == g] = np.clip(np.rint(part / s.astype(np.float32)[:, None]) + z[:, None], 0, top)
    full = (q - zeros[g_idx].T).astype(np.float32) * scales[g_idx].T.astype(np.float32)
    return q, scales, zeros, g_idx, torch.from_numpy(full)


def gptq(bits=4, group=32, sym=True, act=False, v2=False):
    def one(rng, name, w):
        cols = w.shape[1]
        size = cols if group < 0 else group
        g_idx = rng.permutation(np.arange(cols) // size) if act else None
        q, s, z, g_idx, full = affine(w, bits, size, sym, g_idx)
        if not v2:
            z = (z - 1) & (2 ** bits - 1)
        return {".qweight": stream(q.T, bits), ".qzeros": stream(z.T, bits).T.contiguous(), ".scales": torch.from_numpy(s),
                ".g_idx": torch.from_numpy(g_idx.astype(np.int32))}, full
    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act, "sym": sym,
              "checkpoint_format": "gptq_v2" if v2 else "gptq", "damp_percent": 0.1, "lm_head": False}
    return one, config


def awq():
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(v):  # [n, out] along the outputs
        n, out = v.shape
        words = np.zeros((n, out // 8), np.uint32)
        for i, o in enumerate(order):
            words |= v[:, o::8].astype(np.uint32) << np.uint32(4 * i)
        return torch.from_numpy(words.view(np.int32).copy())

    def one(rng, name, w):
        q, s, z, _, full = affine(w, 4, 32, False)
        return {".qweight": pack(q.T), ".qzeros": pack(z), ".scales": torch.from_numpy(s)}, full
    return one, {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}


def fp8(dtype=torch.float8_e4m3fn, block=(32, 32), suffix=".weight_scale_inv", method="fp8"):
    top = torch.finfo(dtype).max

    def one(rng, name, w):
        out, cols = w.shape
        br, bc = block or (1, cols)
        scale = torch.zeros(-(-out // br), -(-cols // bc))
        for i in range(scale.shape[0]):
            for j in range(scale.shape[1]):
                scale[i, j] = w[i * br:(i + 1) * br, j * bc:(j + 1) * bc].abs().max() / top
        grid = scale.repeat_interleave(br, 0)[:out].repeat_interleave(bc, 1)[:, :cols]
        q = (w / grid).to(dtype)
        return {".weight": q, suffix: scale}, q.to(torch.float32) * grid
    config = {"quant_method": method, "modules_to_not_convert": ["lm_head"]}
    if block:
        config |= {"weight_block_size": list(block), "fmt": "e4m3", "activation_scheme": "dynamic"}
    return one, config


def compressed(fmt, scale_dtype=torch.bfloat16, actorder=None, **args):
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    arguments = QuantizationArgs(**args)
    scheme = QuantizationScheme(targets=["Linear"], weights=arguments, format=fmt)
    lib = BaseCompressor.get_value_from_registry(fmt)

    def one(rng, name, w):
        out, cols = w.shape
        group = arguments.group_size or cols
        extra = {}
        grid, perm = w.reshape(out, -1, group), torch.arange(cols)
        if actorder:
            g_idx = torch.from_numpy(rng.permutation(np.arange(cols) // group).astype(np.int32))
            perm = torch.argsort(g_idx, stable=True)
            grid = w[:, perm].reshape(out, -1, group)
            extra["weight_g_idx"] = g_idx
        state = {"weight": w[:, perm] if actorder else w}
        kw = {}
        if fmt == "nvfp4-pack-quantized":
            kw["global_scale"] = state["weight_global_scale"] = torch.tensor([448 * 6.0], dtype=torch.float32) / w.abs().max()
        if arguments.strategy == "block":
            br, bc = arguments.block_structure
            amax = torch.zeros(-(-out // br), -(-cols // bc))
            for i in range(amax.shape[0]):
                for j in range(amax.shape[1]):
                    amax[i, j] = w[i * br:(i + 1) * br, j * bc:(j + 1) * bc].abs().max()
            scale, zero = calculate_qparams(-amax, amax, arguments)
        elif arguments.strategy == "tensor":
            scale, zero = calculate_qparams(w.min().reshape(1), w.max().reshape(1), arguments)
        else:
            scale, zero = calculate_qparams(grid.amin(-1), grid.amax(-1), arguments, **kw)
        if fmt.startswith(("pack", "int", "float")):
            scale = scale.to(scale_dtype)
        state |= {"weight_scale": scale, "weight_zero_point": zero}
        packed = lib.compress(state, scheme)
        decoded = dict(packed)
        if fmt.startswith(("pack", "int", "float")):
            decoded["weight_scale"] = decoded["weight_scale"].to(torch.float32)
        if fmt == "nvfp4-pack-quantized":
            from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
            from compressed_tensors.quantization.lifecycle.forward import dequantize
            codes = unpack_fp4_from_uint8(packed["weight_packed"], out, cols).to(torch.float32)
            full = dequantize(x_q=codes, scale=packed["weight_scale"].to(torch.float32), args=arguments,
                              global_scale=packed["weight_global_scale"], dtype=torch.float32)
        else:
            full = lib.decompress(decoded, scheme)["weight"].to(torch.float32)
        if actorder:  # the file holds the columns where they were
            from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
            codes = unpack_from_int32(packed["weight_packed"], arguments.num_bits, (out, cols))
            back = torch.argsort(perm)
            packed["weight_packed"] = pack_to_int32(codes[:, back].contiguous(), arguments.num_bits)
            full = full[:, back]
        return {"." + k: v for k, v in (packed | extra).items()}, full
    w = {k: v for k, v in arguments.model_dump(mode="json").items()}
    if actorder:
        w["actorder"] = actorder
    return one, {"quant_method": "compressed-tensors", "format": fmt, "quantization_status": "compressed", "ignore": ["lm_head"],
                 "config_groups": {"group_0": {"targets": ["Linear"], "weights": w, "input_activations": None, "output_activations": None}}}


def bnb4(kind, nested):
    import bitsandbytes.functional as F
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute

    def one(rng, name, w):
        q, state = F.quantize_4bit(w, quant_type=kind, blocksize=64, compress_statistics=nested)
        absmax = F.dequantize_blockwise(state.absmax, state.state2) + state.offset if nested else state.absmax
        # Not F.dequantize_4bit: its loop for processors (0.50.2) is wrong where a block passes the end of a row.
        full = _dequantize_4bit_compute(q.reshape(-1), absmax, state.code, 64, w.shape, torch.float32)
        return {".weight": q} | {".weight." + k: v for k, v in state.as_dict(packed=True).items()}, full
    return one, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested}


def bnb8():
    import bitsandbytes.functional as F

    def one(rng, name, w):
        q, scb, _ = F.int8_vectorwise_quant(w.half())
        return {".weight": q, ".SCB": scb, ".weight_format": torch.tensor(0, dtype=torch.uint8)}, F.int8_vectorwise_dequant(q, scb)
    return one, {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": 6.0}


def group(**more):
    return {"type": "int", "strategy": "group", "group_size": 32, "symmetric": True, "num_bits": 4} | more


CASES = {
    "gptq": lambda: gptq(), "gptq-order": lambda: gptq(sym=False, act=True),
    "gptq-v2-8bit": lambda: gptq(bits=8, group=-1, sym=False, v2=True), "gptq-3bit": lambda: gptq(bits=3, sym=False),
    "awq": awq,
    "fp8-block": lambda: fp8(), "fp8-e5m2": lambda: fp8(dtype=torch.float8_e5m2, block=(64, 64)),
    "fbgemm-fp8": lambda: fp8(block=None, suffix=".weight_scale", method="fbgemm_fp8"),
    "ct-int4": lambda: compressed("pack-quantized", **group(symmetric=False)),
    "ct-int4-order": lambda: compressed("pack-quantized", actorder="group", **group()),
    "ct-int8-packed": lambda: compressed("pack-quantized", scale_dtype=torch.float16, num_bits=8, type="int", strategy="channel", symmetric=False),
    "ct-int8": lambda: compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=True),
    "ct-fp8": lambda: compressed("float-quantized", num_bits=8, type="float", strategy="tensor", symmetric=True),
    "ct-fp8-block": lambda: compressed("float-quantized", num_bits=8, type="float", strategy="block", block_structure=[32, 64], symmetric=True),
    "ct-nvfp4": lambda: compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True, scale_dtype=None),
    "bnb-nf4": lambda: bnb4("nf4", True), "bnb-fp4": lambda: bnb4("fp4", False), "bnb-int8": bnb8,
}


def make(name):
    rng = np.random.default_rng(sum(name.encode()))
    one, quantization = CASES[name]()
    plain = torch.float16 if not name.startswith("ct") else torch.bfloat16
    tensors = {"model.embed_tokens.weight": (weights(rng, (VOCAB, HIDDEN)) * 4).to(plain)}
    for norm in ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm"):
        tensors[norm + ".weight"] = torch.from_numpy(1 + rng.standard_normal(HIDDEN).astype(np.float32) * 0.1).to(plain)
    sums = {}
    for short, shape in SHAPES.items():
        module = "model.layers.0." + short
        parts, full = one(rng, module, weights(rng, shape))
        for suffix, t in parts.items():
            tensors[module + suffix] = t.contiguous()
        assert tuple(full.shape) == shape and full.dtype == torch.float32, (module, full.shape, full.dtype)
        sums[module] = hashlib.sha256((full.numpy() + np.float32(0)).astype("<f4").tobytes()).hexdigest()
    os.makedirs(name, exist_ok=True)
    save_file(tensors, os.path.join(name, "model.safetensors"), metadata={"format": "pt"})
    json.dump(CONFIG | {"quantization_config": quantization}, open(os.path.join(name, "config.json"), "w"), indent=1)
    json.dump({"sha256": sums}, open(os.path.join(name, "case.json"), "w"), indent=1)


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    for case in sys.argv[1:] or CASES:
        make(case)
        print(case)
