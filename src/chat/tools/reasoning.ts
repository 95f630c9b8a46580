/** How a family separates its reasoning from the answer. */
export interface ReasoningFormat {
  readonly name: string;
  readonly opens: readonly string[];
  readonly closes: readonly string[];
  /** True: it may start again after the answer has begun. */
  readonly isAnywhere: boolean;
  /** The beginning of the message after the reasoning, if it is a separate one. */
  readonly next?: string;
  /** Texts in a template's output or prompt end that identify this format. */
  readonly marks: readonly string[];
}

const pair = (name: string, open: string, close: string): ReasoningFormat => ({
  name,
  opens: [open],
  closes: [close],
  isAnywhere: false,
  marks: [open],
});

/** In search order: `<think>` occurs in many templates that prefer another. */
export const REASONING_FORMATS: readonly ReasoningFormat[] = [
  pair('seed', '<seed:think>', '</seed:think>'),
  pair('minimax-m3', '<mm:think>', '</mm:think>'),
  {
    name: 'harmony',
    opens: ['<|channel|>analysis<|message|>'],
    closes: ['<|end|>', '<|return|>'],
    isAnywhere: true,
    next: '<|start|>assistant',
    marks: ['<|channel|>analysis'],
  },
  pair('gemma', '<|channel>thought', '<channel|>'),
  {
    name: 'solar',
    opens: ['<|think|>'],
    closes: ['<|end|>', '<|content|>'],
    isAnywhere: false,
    next: '<|begin|>assistant',
    marks: ['<|think|>'],
  },
  pair('mistral', '[THINK]', '[/THINK]'),
  {
    name: 'apriel',
    opens: ['Here are my reasoning steps:'],
    closes: ['[BEGIN FINAL RESPONSE]'],
    isAnywhere: false,
    marks: ['[BEGIN FINAL RESPONSE]'],
  },
  pair('think', '<think>', '</think>'),
];

/** The format whose marks occur in a template's source. */
export function findReasoning(source: string): ReasoningFormat | null {
  return REASONING_FORMATS.find(({ marks }) => marks.some((mark) => source.includes(mark))) ?? null;
}

/** Whether a prompt ends inside the reasoning, so that the answer continues it. */
export function startsInReasoning(reasoning: ReasoningFormat | null, prompt: string): boolean {
  const end = prompt.trimEnd();
  return reasoning !== null && reasoning.opens.some((open) => end.endsWith(open.trimEnd()));
}
