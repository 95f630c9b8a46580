import { randomUUID } from 'node:crypto';
import type { Model } from '../../runtime/model.ts';
import { createChatHost } from '../chat/chat-host.ts';
import { openHistory } from '../chat/history-file.ts';
import { runPiped } from '../chat/piped.ts';
import { runRepl } from '../chat/repl.ts';
import { openChatLearning } from '../chat/chat-learning.ts';
import { createSavedChats } from '../chat/saved-chats.ts';
import { createChatSession } from '../chat/session.ts';
import { chooseModel, describeChoice } from '../choose-model.ts';
import type { CommandRunner } from '../command.ts';
import { fillValues } from '../flags.ts';
import { readGenerateOptions } from '../generate-flags.ts';
import { readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { type CliTools, openCliTools } from '../mcp/open-cli-tools.ts';
import { readRecall } from '../memory/recall.ts';
import { openHub } from '../open-hub.ts';
import { readSavedDefaults } from '../saved-model.ts';
import { describeModel } from '../summary.ts';
import { CHAT_SETTING_FLAGS } from './run-flags.ts';

/** Chats with a model, interactively or with the lines of stdin. */
export const run: CommandRunner = async (commandContext) => {
  const { io, output } = commandContext;
  const values = fillValues(CHAT_SETTING_FLAGS, commandContext.values, io.environment);
  const context = { ...commandContext, values };
  const saved = await readSavedDefaults(context.args[0], context.config.presets);
  const params = { ...saved.params, ...readGenerateOptions(values, io.environment) };
  const config = { ...saved.config, ...readModelConfig(values, io.environment) };
  const recall = readRecall(values);
  const chosen = await chooseModel(context, saved.reference);
  output.note(describeChoice(chosen));
  const learning = await openChatLearning(context, chosen);
  let model: Model | null = null;
  let tools: CliTools | null = null;
  try {
    tools = await openCliTools(context);
    model = await loadWithProgress(context, chosen.source, { ...config, ...learning?.config }, values);
    if (saved.adapter !== null) await model.loadAdapter(saved.adapter, { name: 'adapter' });
    const info = model.modelInfo();
    output.note(describeModel(info));
    if (info.chatTemplate === 'plain') output.note('this model has no chat template; it continues your text');
    // A session keeps its KV pages longest; the random name cannot collide with a stored session.
    const session = `chat ${randomUUID()}`;
    const conversation = createChatSession(
      model,
      {
        ...params,
        session,
        ...(saved.adapter === null ? {} : { adapter: 'adapter' }),
        ...(recall === null ? {} : { memory: recall }),
      },
      (values['--system'] as string | undefined) ?? saved.system,
      learning?.sendFeedback == null ? null : randomUUID,
      tools,
    );
    if (saved.messages.length > 0) conversation.setMessages(saved.messages);
    const savedChats = createSavedChats(openHub().saved, chosen.reference, Date.now);
    const host = createChatHost(context, model, conversation, learning?.sendFeedback ?? null, savedChats);
    if (io.stdin.isTTY === true && !output.isJson) {
      output.note('/help lists the commands, Ctrl-D exits');
      await runRepl(context, host, values['--history'] === true ? openHistory() : null, tools);
    } else {
      await runPiped(io, host);
    }
    const { reference, choice, tried } = chosen;
    const turns = host.turns.map((turn) => (turn.isStopped ? turn : { ...turn, ...turn.answer, answer: undefined }));
    output.document({ model: { reference, choice, tried, ...info }, turns });
  } finally {
    await model?.dispose();
    await tools?.close();
    await learning?.close();
  }
};
