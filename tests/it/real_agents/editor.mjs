// An editor by the TypeScript SDK of the Agent Client Protocol: node editor.mjs SDK FOLDER PROMPT COMMAND…
// It starts the command, has it ask, gives it one prompt, allows what it is asked, and prints a line of JSON for all that it sees.
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [sdk, cwd, words, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(sdk).href);
const tell = (it) => console.log(JSON.stringify(it));

const child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const { agent, client } = acp.methods;

await acp
  .client({ name: 'editor' })
  .onRequest(client.session.requestPermission, ({ params }) => {
    const option = params.options.find((it) => it.kind === 'allow_once');
    tell({ asked: params.toolCall, chosen: option?.kind ?? null });
    return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } };
  })
  .onNotification(client.session.update, ({ params }) => {
    tell({ update: params.update });
  })
  .connectWith(stream, async (context) => {
    const hello = await context.request(agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: 'editor', version: '1' },
    });
    tell({ agent: hello.agentInfo ?? null });
    const { sessionId, modes } = await context.request(agent.session.new, { cwd, mcpServers: [] });
    // An agent may begin in a mode in which it asks nothing.
    if (modes?.availableModes.some((it) => it.id === 'default')) {
      await context.request(agent.session.setMode, { sessionId, modeId: 'default' });
    }
    const ended = await context.request(agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] });
    tell({ stop: ended.stopReason });
  });
child.stdin.end();
child.once('exit', (code) => process.exit(code ?? 1));
