export { BUILTIN_TEMPLATES } from './builtin-templates.ts';
export type { BuiltinTemplate } from './builtin-templates.ts';
export { createChatTemplate } from './chat-template.ts';
export type { ChatTemplateOptions } from './chat-template.ts';
export { stripGuard } from './control-guard.ts';
export type { TemplateLimits } from './jinja/limits.ts';
export * from './tools/index.ts';
export type { ChatMessage, ChatTemplate, RenderedChat, RenderOptions, ToolCall } from './types.ts';
