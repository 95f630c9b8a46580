/** Plain data about one thing that happened; never the text of a prompt or an answer unless that was asked for. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

export type LogLevel = 'info' | 'warn' | 'error';

/** Where the server says what it does. */
export interface Logger {
  log(level: LogLevel, event: string, fields: LogFields): void;
}

/** One JSON object a line. */
export function createJsonLogger(write: (line: string) => void, wallClock: () => number): Logger {
  return {
    log(level, event, fields) {
      write(`${JSON.stringify({ time: new Date(wallClock()).toISOString(), level, event, ...fields })}\n`);
    },
  };
}

export const silentLogger: Logger = { log() {} };
