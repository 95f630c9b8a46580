/** Fields of a log entry; never the text of a prompt or an answer. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

export type LogLevel = 'info' | 'warn' | 'error';

/** Receives the server's log entries. */
export interface Logger {
  log(level: LogLevel, event: string, fields: LogFields): void;
}

/** Logs one JSON object per line. */
export function createJsonLogger(write: (line: string) => void, wallClock: () => number): Logger {
  return {
    log(level, event, fields) {
      write(`${JSON.stringify({ time: new Date(wallClock()).toISOString(), level, event, ...fields })}\n`);
    },
  };
}

export const silentLogger: Logger = { log() {} };
