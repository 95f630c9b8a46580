export { joinContent } from './content.ts';
export type { ToolDialect } from './dialect.ts';
export { TOOL_FORMATS } from './formats/index.ts';
export { normalizeToolMessages } from './normalize.ts';
export { createOutputParser } from './output-parser.ts';
export type { OutputParser, OutputParserOptions } from './output-parser.ts';
export type { ParserLimits } from './limits.ts';
export { REASONING_FORMATS, startsInReasoning } from './reasoning.ts';
export type { ReasoningFormat } from './reasoning.ts';
export { toStructure } from './to-structure.ts';
export { toToolSpecs } from './tool-specs.ts';
export type {
  ArgumentsGrammar,
  CallGrammar,
  CallOutcome,
  GrammarRequest,
  OutputEvent,
  ParameterGrammar,
  ToolChoice,
  ToolFormat,
  ToolSpec,
} from './types.ts';
