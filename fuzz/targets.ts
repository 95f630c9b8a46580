import { grammarTarget } from './targets/grammar.ts';
import { ggufTarget, safetensorsTarget } from './targets/model-files.ts';
import { indexTarget } from './targets/index-files.ts';
import { spillTarget } from './targets/spill-files.ts';
import { templateTarget } from './targets/template.ts';
import { wireTarget } from './targets/wire.ts';
import type { FuzzTarget } from './target.ts';

/** All readers of untrusted bytes that are fuzzed. */
export const TARGETS: readonly FuzzTarget[] = [
  ggufTarget,
  safetensorsTarget,
  templateTarget,
  grammarTarget,
  wireTarget,
  spillTarget,
  indexTarget,
];
