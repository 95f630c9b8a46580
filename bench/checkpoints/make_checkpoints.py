"""Small random checkpoints of every kind, written by Hugging Face's transformers, with the logits that its own models give.

    python3 make_checkpoints.py FOLDER [KIND ...]

Needs torch and transformers (written with 5.17). `npm run compare:checkpoints -- FOLDER` converts them and compares the logits.
"""
import json
import math
import os
import sys
import traceback

import torch
from transformers import AutoConfig, AutoModelForCausalLM

torch.manual_seed(0)
ROOT = sys.argv[1]; os.makedirs(ROOT, exist_ok=True)
C = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
def c(**k): return {**C, **k}
MODELS = {
 'llama': ('llama', c()),
 'llama3-rope': ('llama', c(rope_parameters=dict(rope_type='llama3', rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))),
 'mistral': ('mistral', c(sliding_window=None)),
 'mixtral': ('mixtral', c(num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
 'qwen2': ('qwen2', c()),
 'qwen2_moe': ('qwen2_moe', c(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=64, decoder_sparse_step=1, norm_topk_prob=False)),
 'qwen3': ('qwen3', c(head_dim=32)),
 'qwen3_moe': ('qwen3_moe', c(head_dim=32, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=1)),
 'gpt_oss': ('gpt_oss', c(head_dim=32, num_local_experts=4, num_experts_per_tok=2, intermediate_size=64, sliding_window=16, num_hidden_layers=2)),
 'lfm2': ('lfm2', c(layer_types=['conv','full_attention','conv'], conv_L_cache=3, block_auto_adjust_ff_dim=False)),
 'lfm2_moe': ('lfm2_moe', c(layer_types=['conv','full_attention','conv'], conv_L_cache=3, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, num_dense_layers=1, use_expert_bias=True, norm_topk_prob=True)),
 'gemma': ('gemma', c(head_dim=32)),
 'gemma2': ('gemma2', c(head_dim=32, sliding_window=16, query_pre_attn_scalar=32)),
 'gemma3_text': ('gemma3_text', c(head_dim=32, sliding_window=16, query_pre_attn_scalar=32, num_hidden_layers=6)),
 'gemma3n_text': ('gemma3n_text', c(head_dim=32, sliding_window=16, num_hidden_layers=10, num_kv_shared_layers=5, vocab_size_per_layer_input=320, hidden_size_per_layer_input=16, laurel_rank=8, altup_num_inputs=4, activation_sparsity_pattern=[0.5]*2+[0.0]*8, intermediate_size=96)),
 'gemma4_text': ('gemma4_text', c(head_dim=32, global_head_dim=64, sliding_window=16, num_hidden_layers=6, num_kv_shared_layers=0, vocab_size_per_layer_input=320, hidden_size_per_layer_input=16)),
 'phi': ('phi', c(partial_rotary_factor=0.5, num_key_value_heads=4)),
 'phi3': ('phi3', c()),
 'olmo2': ('olmo2', c()),
 'smollm3': ('smollm3', c(num_hidden_layers=4, no_rope_layer_interval=4)),
 'granite': ('granite', c(embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=2.0)),
 'granitemoe': ('granitemoe', c(num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=2.0)),
 'granitemoehybrid': ('granitemoehybrid', c(layer_types=['mamba','attention','mamba'], num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=64, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16, mamba_expand=2, mamba_chunk_size=16, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=2.0, position_embedding_type='rope')),
 'glm4': ('glm4', c(head_dim=32)),
 'cohere': ('cohere', c(logit_scale=0.25)),
 'cohere2': ('cohere2', c(logit_scale=0.25, sliding_window=16, num_hidden_layers=4)),
 'starcoder2': ('starcoder2', c(use_bias=True)),
 'deepseek_v2': ('deepseek_v2', c(num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1, topk_method='greedy', routed_scaling_factor=1.0)),
 'deepseek_v3': ('deepseek_v3', c(num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=48, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=32, first_k_dense_replace=1, routed_scaling_factor=1.5)),
 'falcon_h1': ('falcon_h1', c(mamba_d_ssm=128, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16, mamba_expand=2, mamba_chunk_size=16, mamba_d_conv=4, head_dim=16, embedding_multiplier=1.5, lm_head_multiplier=0.7, key_multiplier=0.8, attention_out_multiplier=0.9, ssm_in_multiplier=1.1, ssm_out_multiplier=0.9, mlp_multipliers=[0.9,1.1], ssm_multipliers=[0.9,1.1,0.8,1.2,0.7])),
 'qwen3_next': ('qwen3_next', c(head_dim=32, num_hidden_layers=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4, layer_types=['linear_attention']*3+['full_attention'], decoder_sparse_step=1)),
 'qwen3_5_text': ('qwen3_5_text', c(head_dim=32, num_hidden_layers=4, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4, layer_types=['linear_attention']*3+['full_attention'])),
 'qwen3_5_moe_text': ('qwen3_5_moe_text', c(head_dim=32, num_hidden_layers=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4, layer_types=['linear_attention']*3+['full_attention'])),
}
ids = [(i * 37 + 11) % 300 + 10 for i in range(40)]
def shake(model):
    """Norms of ones and biases of zeros would hide mistakes."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.is_floating_point(): continue
            if 'A_log' in name: p.copy_(torch.rand_like(p) * 1.5)
            elif 'conv' in name and p.ndim == 3: p.normal_(0, 0.4)
            elif p.ndim >= 2: p.normal_(0, 0.9 / math.sqrt(p.shape[-1]))
            else: p.add_(torch.randn_like(p) * 0.15)
        for name, b in model.named_buffers():
            if 'bias' in name and b.is_floating_point(): b.add_(torch.randn_like(b) * 0.1)
def make_smolvlm(folder):
    """The image encoder and projector of SmolVLM, with the rows that its model gives for an image."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    vision = dict(hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, num_channels=3)
    config = SmolVLMConfig(vision_config=vision, text_config={**C, 'model_type': 'llama'}, scale_factor=2, image_token_id=5, pad_token_id=0)
    config._attn_implementation = 'eager'
    model = SmolVLMForConditionalGeneration(config).float().eval()
    shake(model)
    pixels = torch.rand(1, 1, 3, 64, 64) * 2 - 1
    with torch.no_grad():
        rows = model.model.get_image_features(pixels)
    if hasattr(rows, 'pooler_output'):
        rows = rows.pooler_output
    if isinstance(rows, (tuple, list)):
        rows = torch.cat([part.reshape(-1, part.shape[-1]) for part in rows])
    model.save_pretrained(folder)
    pixels.contiguous().numpy().tofile(f'{folder}/pixels.f32')
    rows.reshape(-1, rows.shape[-1]).contiguous().numpy().tofile(f'{folder}/features.f32')


report = {}
only = sys.argv[2:]
for key, (kind, kwargs) in MODELS.items():
    if only and key not in only: continue
    try:
        config = AutoConfig.for_model(kind, **kwargs)
        config._attn_implementation = 'eager'
        try: config._experts_implementation = 'eager'
        except Exception: pass
        model = AutoModelForCausalLM.from_config(config).float().eval()
        shake(model)
        folder = f'{ROOT}/{key}'
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].float()
        model.save_pretrained(folder)
        logits.contiguous().numpy().tofile(f'{folder}/logits.f32')
        json.dump({'ids': ids, 'shape': list(logits.shape)}, open(f'{folder}/expected.json', 'w'))
        report[key] = f'ok {model.num_parameters()} std {logits.std().item():.3f}'
    except Exception as e:
        report[key] = 'FAILED ' + repr(e)[:300]
        traceback.print_exc(limit=3)
if not only or 'smolvlm' in only:
    make_smolvlm(f'{ROOT}/smolvlm')
    report['smolvlm'] = 'ok'
for k, v in report.items(): print(k, v)
