// Reads the routing suites in place; they are never copied into the repository.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export interface ModelOutcomes {
  readonly text: string;
  /** Must not be on both sides of a split. */
  readonly group: string;
  /** Common property of questions whose outcomes may be correlated. */
  readonly cluster: string;
  /** The text's sentence embedding. */
  readonly vector?: Float32Array;
  /** By model. */
  readonly outcomes: readonly number[];
  /** Characters of the answers, by model, where they are known. */
  readonly lengths?: readonly number[];
}

/** Quoted fields may contain commas, line ends and doubled quotes. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = '';
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (isQuoted) {
      if (char !== '"') field += char;
      else if (text[i + 1] === '"') field += text[i++]!;
      else isQuoted = false;
    } else if (char === '"') isQuoted = true;
    else if (char === ',') {
      row.push(field);
      field = '';
    } else if (char === '\n') {
      row.push(field.replace(/\r$/, ''));
      rows.push(row);
      [row, field] = [[], ''];
    } else field += char;
  }
  if (field !== '' || row.length > 0) rows.push([...row, field]);
  return rows;
}

export const routingSuite = (): string => join(process.cwd(), '..', 'shared', 'suites', 'routing');
export const hasRoutingSuite = (): boolean => existsSync(routingSuite());

/** Questions of many subjects with the outcomes of two models, the small one first. */
export function readMmlu(): ModelOutcomes[] {
  const folder = join(routingSuite(), 'mmlu-two-models');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.csv'))
    .sort()
    .flatMap((file) => {
      const group = file.replace(/^mmlu_|\.csv$/g, '');
      const [, ...rows] = parseCsv(readFileSync(join(folder, file), 'utf8'));
      return rows.map(([text, small, large]) => ({ text: text!, group, cluster: group, outcomes: [+(small === 'True'), +(large === 'True')] })); // prettier-ignore
    });
}

export const ALPACA_MODELS = ['llama-3.2-1b', 'llama-3.2-3b', 'llama-3.1-8b', 'gpt-4-1106'] as const;

/** Prompts with the win rates of four models; every prompt is a separate group. */
export function readAlpaca(): ModelOutcomes[] {
  const lines = readFileSync(join(routingSuite(), 'alpaca-eval-four-models.jsonl'), 'utf8').split('\n');
  return lines.filter(Boolean).map((line) => {
    const { prompt, win, output_chars: chars } = JSON.parse(line) as { prompt: string; win: Record<string, number>; output_chars: Record<string, number> }; // prettier-ignore
    const lengths = ALPACA_MODELS.map((model) => chars[model]!);
    return {
      text: prompt,
      group: prompt,
      cluster: prompt,
      outcomes: ALPACA_MODELS.map((model) => win[model]!),
      lengths,
    };
  });
}

/** Questions to a bank with their intents, one of 77. */
export function readBanking(): { text: string; intent: string }[] {
  const [, ...rows] = parseCsv(readFileSync(join(routingSuite(), 'banking77-train.csv'), 'utf8'));
  return rows.filter((row) => row.length === 2).map(([text, intent]) => ({ text: text!.trim(), intent: intent! }));
}
