import { randomUUID } from 'node:crypto';
import type { Model } from '../../runtime/model.ts';
import { createChatHost } from '../chat/chat-host.ts';
import { openHistory } from '../chat/history-file.ts';
import { runPiped } from '../chat/piped.ts';
import { runRepl } from '../chat/repl.ts';
import { openChatLearning } from '../chat/chat-learning.ts';
import { createChatSession } from '../chat/session.ts';
import { chooseModel, describeChoice } from '../choose-model.ts';
import type { CommandRunner } from '../command.ts';
import { fillValues } from '../flags.ts';
import { readGenerateOptions } from '../generate-flags.ts';
import { readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { describeModel } from '../summary.ts';
import { CHAT_OWN_FLAGS } from './run-flags.ts';

/** Talks to a model: line by line at a terminal, or the lines of stdin one after another. */
export const chat: CommandRunner = async (given) => {
  const { io, output } = given;
  const values = fillValues(CHAT_OWN_FLAGS, given.values, io.environment);
  const context = { ...given, values };
  const params = readGenerateOptions(values, io.environment);
  const config = readModelConfig(values, io.environment);
  const chosen = await chooseModel(context, context.args[0]);
  output.note(describeChoice(chosen));
  const learns = await openChatLearning(context, chosen);
  let model: Model | null = null;
  try {
    model = await loadWithProgress(context, chosen.source, { ...config, ...learns?.config }, values);
    const info = model.modelInfo();
    output.note(describeModel(info));
    if (info.chatTemplate === 'plain') output.note('this model knows no chat format: it goes on with what you write');
    // Keeps what was said in memory longest. A name of its own: a kept conversation may be called anything.
    const session = `chat ${randomUUID()}`;
    const conversation = createChatSession(
      model,
      { ...params, session },
      (values['--system'] as string | undefined) ?? null,
      learns === null ? null : randomUUID,
    );
    const host = createChatHost(context, model, conversation, learns?.judge ?? null);
    if (io.stdin.isTTY === true && !output.isJson) {
      output.note('/help shows the commands, Ctrl-D leaves');
      await runRepl(context, host, values['--history'] === true ? openHistory() : null);
    } else {
      await runPiped(io, host);
    }
    const { reference, choice, tried } = chosen;
    const turns = host.turns.map((turn) => (turn.isStopped ? turn : { ...turn, ...turn.answer, answer: undefined }));
    output.document({ model: { reference, choice, tried, ...info }, turns });
  } finally {
    await model?.dispose();
    await learns?.close();
  }
};
