/**
 * How byte-level BPE vocabularies split text into words before merging, by the name in `tokenizer.ggml.pre`.
 *
 * Patterns apply in order, each to the pieces of the previous one; matches and the text between them are pieces. They
 * follow llama.cpp, which sometimes differs from the original vocabulary: there, `\p{Lu}` and similar classes match any
 * letter, and only ASCII letters have a case.
 */
export interface PreTokenizer {
  readonly names: readonly string[];
  /** `\s` and `\S` mean Unicode's White_Space, unlike in JavaScript (U+0085, U+FEFF). */
  readonly patterns: readonly string[];
  /** A word that is a token stays whole even if the merges would not build it. */
  readonly ignoresMerges?: boolean;
  readonly addsBos?: boolean;
  /** The family has no BOS unless the file names one. */
  readonly hasNoBos?: boolean;
}

const raw = String.raw;

// Every pattern must consume what it scans: a pattern with a long look-ahead and a short match is quadratic on a
// megabyte of spaces or digits. Vocabularies that need such patterns are deliberately not supported.
const GPT2 = raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const CONTRACTIONS = raw`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`;
const WORD = raw`[^\r\n\p{L}\p{N}]?\p{L}+`;
const SYMBOLS = raw` ?[^\s\p{L}\p{N}]+[\r\n]*`;
const SPACES = raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const LLAMA3 = `${CONTRACTIONS}|${WORD}|${raw`\p{N}{1,3}`}|${SYMBOLS}|${SPACES}`;
const QWEN2 = `${CONTRACTIONS}|${WORD}|${raw`\p{N}`}|${SYMBOLS}|${SPACES}`;

const UPPER = raw`(?:(?=\p{L})[^a-z])`;
const LOWER = raw`(?:(?=\p{L})[^A-Z])`;
const casedWord = (suffix: string): string =>
  raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${suffix}|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${suffix}`;
const SLASHED_SYMBOLS = raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`;

const ASCII_PUNCTUATION = raw`[!"#$%&'()*+,\-.\/:;<=>?@\[\\\]^_${'`'}\{|\}~]`;
const punctuatedWords = (end: string): string =>
  raw`${ASCII_PUNCTUATION}[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+${end}|\s+(?!\S)|\s+`;
const HAN_KANA = raw`[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`;
const EAST_ASIAN = raw`(?:(?!\s)[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff])+`;
const NOT_SENTENCE_MARKS = raw` ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+`;

/** Letters with case, as listed by the DeepSeek LLM vocabulary (from an older Unicode version). */
const CASED_LETTERS =
  String.raw`\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}` +
  String.raw`\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}` +
  String.raw`\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}` +
  String.raw`\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}` +
  String.raw`\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}` +
  String.raw`\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}` +
  String.raw`\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}` +
  String.raw`\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}` +
  String.raw`\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}` +
  String.raw`\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}` +
  String.raw`\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}` +
  String.raw`\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}` +
  String.raw`\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}` +
  String.raw`\u{1e900}-\u{1e943}`;

export const PRE_TOKENIZERS: readonly PreTokenizer[] = [
  {
    names: ['default'],
    patterns: [raw`[\p{P}$+<=>^~|]+`, GPT2, raw`\p{N}+`, '[0-9][0-9][0-9]'],
  },
  {
    names: ['llama-bpe', 'llama3', 'llama-v3', 'falcon3', 'falcon-h1', 'pixtral', 'midm-2.0', 'lfm2', 'jina-v5-nano'],
    patterns: [LLAMA3],
    ignoresMerges: true,
    addsBos: true,
  },
  { names: ['dbrx', 'smaug-bpe'], patterns: [LLAMA3] },
  { names: ['chatglm-bpe', 'glm4'], patterns: [LLAMA3], hasNoBos: true },
  {
    names: ['qwen2', 'deepseek-r1-qwen', 'kormo', 'f2llmv2', 'megrez', 'stablelm2', 'hunyuan', 'solar-open', 'grok-2'],
    patterns: [QWEN2],
  },
  {
    names: ['qwen35'],
    patterns: [raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|${SPACES}`],
  },
  {
    names: [
      'gpt-2',
      'phi-2',
      'mpt',
      'olmo',
      'jais',
      'trillion',
      'granite-docling',
      'exaone4',
      'gigachat',
      'a.x-4.0',
      'mellum',
      'modern-bert',
      'jina-es',
      'jina-de',
      'jina-v2-es',
      'jina-v2-de',
      'jina-v1-en',
      'jina-v2-code',
      'roberta-bpe',
    ],
    patterns: [GPT2],
  },
  {
    names: ['starcoder', 'refact', 'command-r', 'smollm', 'codeshell', 'exaone', 'minerva-7b', 'mellum2'],
    patterns: [raw`\p{N}`, GPT2],
  },
  { names: ['falcon'], patterns: [raw`[\p{P}$+<=>^~|${'`'}]+`, GPT2, '[0-9][0-9][0-9]'] },
  {
    names: ['deepseek-llm'],
    patterns: [
      raw`[\r\n]`,
      raw`\s?[A-Za-z${CASED_LETTERS}]+`,
      raw`\s?[!-\/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001\u3002]+`,
      raw`(?<!\s)\s+$`, // without the look-behind, every space of a long run would scan to its end
      EAST_ASIAN,
      raw`\p{N}+`,
    ],
  },
  { names: ['deepseek-coder'], patterns: [raw`[\r\n]`, raw`\s?\p{L}+`, raw`\s?\p{P}+`, EAST_ASIAN, raw`\p{N}`] },
  {
    names: ['deepseek-v3', 'hunyuan-dense', 'joyai-llm', 'hy_v4'],
    patterns: [raw`\p{N}{1,3}`, HAN_KANA, punctuatedWords(raw`[\r\n]*|\s*[\r\n]+`)],
  },
  {
    names: ['spark2_5'],
    patterns: [raw`\p{N}{1,3}`, HAN_KANA, punctuatedWords(raw`|[\r\n]`), raw`\p{N}`],
  },
  {
    names: ['tekken'],
    patterns: [raw`${casedWord('')}|\p{N}|${SLASHED_SYMBOLS}|${SPACES}`],
    ignoresMerges: true,
    addsBos: true,
  },
  {
    names: ['gpt-4o', 'llama4', 'kanana2', 'talkie', 'minimax-m2'],
    patterns: [raw`${casedWord(`${CONTRACTIONS}?`)}|\p{N}{1,3}|${SLASHED_SYMBOLS}|${SPACES}`],
  },
  { names: ['bloom', 'poro-chat', 'gpt3-finnish'], patterns: [NOT_SENTENCE_MARKS] },
  { names: ['viking'], patterns: [NOT_SENTENCE_MARKS, raw`\p{N}`] },
  {
    names: ['bailingmoe', 'bailingmoe2', 'llada-moe'],
    patterns: [raw`'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|${WORD}|\p{N}|${SYMBOLS}|\s*[\r\n]|\s+(?!\S)|\s+`],
  },
  {
    names: ['seed-coder'],
    patterns: [raw`${CONTRACTIONS}|${WORD}|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|${SPACES}`],
  },
  { names: ['ufakzeka'], patterns: [raw`${WORD}|\p{N}|${SYMBOLS}|${SPACES}`] },
  { names: ['laguna'], patterns: [raw`[^\n]+|[\n]+`, QWEN2] },
  {
    names: ['minicpm5'],
    patterns: [raw`\p{N}{1,3}`, raw`${CONTRACTIONS}|${WORD}|\p{N}+|${SYMBOLS}|${SPACES}`],
    ignoresMerges: true,
  },
];
