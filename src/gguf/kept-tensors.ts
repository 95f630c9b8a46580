/** Small or delicate matrices: norms, routers, positions, patches, convolutions, and those of alternating updates and low-rank residuals. */
const KEPT =
  /(?:_norm|ffn_gate_inp(?:_shexp)?|position_embd|patch_embd|token_types|ssm_conv1d|shortconv\.conv|altup_\w+|laurel_[lr]|per_layer_model_proj)\.weight$/;

/** Whether a tensor keeps its precision when a model is quantized: F32 in files converted from a checkpoint. */
export const keepsPrecision = (name: string): boolean => !name.endsWith('.weight') || KEPT.test(name);
