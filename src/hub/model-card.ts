import type { GgufSummary } from './gguf-summary.ts';

/** Figures of a quantized file, as measured by `ruvllm quantize`. */
export interface CardFigures {
  readonly type: string;
  readonly bitsPerWeight: number;
  readonly command: string | null;
  readonly divergence: { readonly meanKl: number; readonly top1: number; readonly numTokens: number } | null;
}

/** A file with its facts. */
export interface CardFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly summary: GgufSummary;
}

/** Pipes and line breaks would end a cell. */
const cell = (text: string): string => text.replaceAll(/[\p{Cc}|`]/gu, ' ').slice(0, 300);

/** The README.md of a repository with one quantized file. */
export function writeModelCard(file: CardFile, figures: CardFigures | null, baseModel: string | null): string {
  const { architecture, mainTensorType, numParameters } = file.summary;
  const bits = figures?.bitsPerWeight ?? (8 * file.sizeBytes) / numParameters;
  const rows: [string, string][] = [
    ['file', `\`${cell(file.name)}\``],
    ['architecture', cell(architecture)],
    ['quantization', cell(figures?.type ?? mainTensorType ?? 'unknown')],
    ['bits per weight', bits.toFixed(2)],
    ['size', `${file.sizeBytes} bytes`],
    ['SHA-256', `\`${file.sha256}\``],
  ];
  const divergence = figures?.divergence ?? null;
  if (divergence !== null) {
    rows.push(
      [
        'KL divergence from the source',
        `${divergence.meanKl.toExponential(2)} nats, mean over ${divergence.numTokens} tokens`,
      ],
      ['equal first choices', `${(divergence.top1 * 100).toFixed(1)} %`],
    );
  }
  if (figures?.command != null) rows.push(['command', `\`${cell(figures.command)}\``]);
  const header = ['---', 'library_name: gguf', ...(baseModel === null ? [] : [`base_model: ${baseModel}`]), '---'];
  const table = ['| | |', '| --- | --- |', ...rows.map(([name, value]) => `| ${name} | ${value} |`)];
  return [
    ...header,
    '',
    `# ${cell(file.name)}`,
    '',
    ...table,
    '',
    `Run it: \`ruvllm run ./${cell(file.name)}\``,
    '',
  ].join('\n');
}
