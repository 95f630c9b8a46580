import type { Metadata } from '../gguf/types.ts';
import type { FillInTokens } from './types.ts';
import { SPECIAL, TOKEN, type Vocabulary } from './vocabulary.ts';

/** Defaults of a tokenizer family for values missing from the file. */
export interface SpecialDefaults {
  readonly bosId: number | null;
  readonly eosId: number | null;
  readonly unknownId: number | null;
  readonly separatorId: number | null;
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** Every text is enclosed in BOS (CLS) and the separator, regardless of the file's BOS and EOS settings. */
  readonly isFramed: boolean;
}

export interface SpecialTokens {
  readonly bosId: number | null;
  readonly eosId: number | null;
  readonly unknownId: number | null;
  /** Tokens that `addSpecial` puts before and after the text. */
  readonly openingId: number | null;
  readonly closingId: number | null;
  readonly endOfGenerationIds: ReadonlySet<number>;
  readonly fillIn: FillInTokens | null;
}

/** Spellings that end a turn or a text, regardless of their type in the file. */
const END_OF_GENERATION = [
  '<|eot_id|>',
  '<|im_end|>',
  '<|end|>',
  '<|return|>',
  '<|call|>',
  '<|flush|>',
  '<|calls|>',
  '<end_of_turn>',
  '<|endoftext|>',
  '</s>',
  '<|eom_id|>',
  '<EOT>',
  '_<EOT>',
  '[EOT]',
  '[EOS]',
  '<|end_of_text|>',
  '<end_of_utterance>',
  '<eos>',
  '<turn|>',
  '<|tool_response>',
  '<｜end▁of▁sentence｜>',
  '[e~[',
];

/** Fill-in-the-middle tokens by role: the first spelling present, unless a metadata key names another. */
const FILL_IN_ROLES = [
  {
    role: 'prefix',
    keys: ['fim_pre_token_id', 'prefix_token_id'],
    endsGeneration: false,
    spellings: [
      '<|fim_prefix|>',
      '<fim-prefix>',
      '<fim_prefix>',
      '<｜fim▁begin｜>',
      '<PRE>',
      '▁<PRE>',
      '<|code_prefix|>',
      '<|prefix|>',
    ],
  },
  {
    role: 'suffix',
    keys: ['fim_suf_token_id', 'suffix_token_id'],
    endsGeneration: false,
    spellings: [
      '<|fim_suffix|>',
      '<fim-suffix>',
      '<fim_suffix>',
      '<｜fim▁hole｜>',
      '<SUF>',
      '▁<SUF>',
      '<|code_suffix|>',
      '<|suffix|>',
    ],
  },
  {
    role: 'middle',
    keys: ['fim_mid_token_id', 'middle_token_id'],
    endsGeneration: false,
    spellings: [
      '<|fim_middle|>',
      '<fim-middle>',
      '<fim_middle>',
      '<｜fim▁end｜>',
      '<MID>',
      '▁<MID>',
      '<|code_middle|>',
      '<|middle|>',
    ],
  },
  {
    role: 'padding',
    keys: ['fim_pad_token_id'],
    endsGeneration: true,
    spellings: ['<|fim_pad|>', '<fim-pad>', '<fim_pad>', '<PAD>', '[PAD]'],
  },
  {
    role: 'repository',
    keys: ['fim_rep_token_id'],
    endsGeneration: true,
    spellings: ['<|fim_repo|>', '<|repo_name|>', '<fim-repo>', '<REPO>', '<reponame>'],
  },
  { role: 'file', keys: ['fim_sep_token_id'], endsGeneration: true, spellings: ['<|file_sep|>'] },
] as const;

/** Markers of a channel format that are part of the visible answer, so they are not control tokens. */
const SHOWN_MARKERS = ['<|channel|>', '<|message|>', '<|start|>', '<|constrain|>'];

function readId(metadata: Metadata, key: string, defaultId: number | null, vocabSize: number): number | null {
  const fallback = defaultId !== null && defaultId < vocabSize ? defaultId : null;
  const id = metadata.number(`tokenizer.ggml.${key}`, -1);
  return Number.isInteger(id) && id >= 0 && id < vocabSize ? id : fallback;
}

/** Marks the tokens and returns those of a prompt; null if prefix, suffix or middle is missing. */
function markFillIn(metadata: Metadata, vocabulary: Vocabulary, endIds: Set<number>): FillInTokens | null {
  const { ids, attributes, texts } = vocabulary;
  const byRole = new Map<string, number>();
  for (const { role, keys, spellings, endsGeneration } of FILL_IN_ROLES) {
    let id: number | null = null;
    for (const key of keys) id = readId(metadata, key, id, texts.length);
    if (id === null) {
      const spelling = spellings.find((text) => ids.has(text));
      if (spelling === undefined) continue;
      id = ids.get(spelling)!;
      attributes[id]! |= TOKEN.control;
    }
    if (endsGeneration) endIds.add(id);
    byRole.set(role, id);
  }
  const [prefixId, suffixId, middleId] = [byRole.get('prefix'), byRole.get('suffix'), byRole.get('middle')];
  if (prefixId === undefined || suffixId === undefined || middleId === undefined) return null;
  const [repositoryId, fileId] = [byRole.get('repository') ?? null, byRole.get('file') ?? null];
  return { prefixId, suffixId, middleId, repositoryId, fileId };
}

function markEndOfGeneration(vocabulary: Vocabulary, endIds: Set<number>): void {
  for (const spelling of END_OF_GENERATION) {
    const id = vocabulary.ids.get(spelling);
    if (id === undefined) continue;
    endIds.add(id);
    vocabulary.attributes[id]! |= TOKEN.control;
  }
}

/** Handles formats in which a spelling of the table above means something else. */
function applyFormatExceptions(vocabulary: Vocabulary, endIds: Set<number>): void {
  const { ids, attributes } = vocabulary;
  const ends = (spelling: string): boolean => endIds.has(ids.get(spelling) ?? -1);
  const call = ends('<|call|>') || ends('<|calls|>');
  // Here <|end|> closes a message and the turn continues; <|return|> or <|flush|> ends it.
  if (call && (ends('<|return|>') || ends('<|flush|>')) && ends('<|end|>')) {
    endIds.delete(ids.get('<|end|>')!);
    attributes[ids.get('<|end|>')!] = TOKEN.userDefined;
  }
  // Here </s> is the HTML tag, an ordinary token.
  if (ends('<|tool_response>') && ends('</s>')) {
    endIds.delete(ids.get('</s>')!);
    attributes[ids.get('</s>')!] = TOKEN.normal;
  }
}

function markStripping(metadata: Metadata, { ids, attributes }: Vocabulary): void {
  const set = (spelling: string, bit: number): void => {
    const id = ids.get(spelling);
    if (id !== undefined) attributes[id]! |= bit;
  };
  const modelName = metadata.string('general.name', '').toLowerCase();
  const architecture = metadata.string('general.architecture', '');
  const pre = metadata.string('tokenizer.ggml.pre', '');
  if (/jina-v2-(de|es|code)/.test(pre) || /nomic-bert-moe|jina-bert-v3/.test(architecture)) {
    set('<mask>', TOKEN.stripLeft);
  } else if (/phi-?3/.test(modelName)) {
    for (let id = 0; id < attributes.length; id++) {
      if ((attributes[id]! & SPECIAL) !== 0) attributes[id]! |= TOKEN.stripRight;
    }
    set('</s>', TOKEN.stripRight);
    for (const spelling of ['<unk>', '<s>', '<|endoftext|>']) {
      const id = ids.get(spelling);
      if (id !== undefined) attributes[id]! &= ~TOKEN.stripRight;
    }
  } else if (modelName.includes('modern-bert')) {
    set('[MASK]', TOKEN.stripLeft);
  }
}

/**
 * Finds the tokens with a role and completes the vocabulary's attributes by spelling, like llama.cpp: files have no
 * stripping rules, and many mark control tokens as normal.
 */
export function resolveSpecialTokens(
  metadata: Metadata,
  vocabulary: Vocabulary,
  defaults: SpecialDefaults,
): SpecialTokens {
  const vocabSize = vocabulary.texts.length;
  const id = (key: string, defaultId: number | null): number | null => readId(metadata, key, defaultId, vocabSize);
  const bosId = id('bos_token_id', defaults.bosId);
  const eosId = id('eos_token_id', defaults.eosId);
  const separatorId = id('seperator_token_id', defaults.separatorId); // spelled this way in the format
  const endIds = new Set<number>();
  const fillIn = markFillIn(metadata, vocabulary, endIds);
  markEndOfGeneration(vocabulary, endIds);
  for (const spelling of SHOWN_MARKERS) {
    const marker = vocabulary.ids.get(spelling);
    if (marker !== undefined) vocabulary.attributes[marker] = TOKEN.userDefined;
  }
  for (const end of [eosId, id('eot_token_id', null), id('eom_token_id', null)]) if (end !== null) endIds.add(end);
  applyFormatExceptions(vocabulary, endIds);
  markStripping(metadata, vocabulary);
  const addsBos = defaults.isFramed || metadata.boolean('tokenizer.ggml.add_bos_token', defaults.addBos);
  const addsEos = metadata.boolean('tokenizer.ggml.add_eos_token', defaults.addEos);
  const closingId = defaults.isFramed ? separatorId : addsEos ? eosId : null;
  return {
    bosId,
    eosId,
    unknownId: id('unknown_token_id', defaults.unknownId),
    openingId: addsBos ? bosId : null,
    closingId,
    endOfGenerationIds: endIds,
    fillIn,
  };
}
