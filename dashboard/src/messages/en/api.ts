export const api = {
  unreachable: (reason: string) => `Cannot reach the server: ${reason}`,
  lostConnection: (reason: string) => `Lost the connection to the server: ${reason}`,
  incomplete: 'The stream ended before the answer was complete.',
  ended: 'The server closed the stream.',
};
