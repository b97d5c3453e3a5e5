//! The commands by which macOS and Windows show a notice. The texts of a notice travel as arguments or variables and never as part of
//! a script, so that no text is code.

/// A system that shows notices by a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesktopSystem {
    /// macOS, which shows notices by `osascript`; a click opens nothing.
    MacOs,
    /// Windows, which shows notices by PowerShell; a click opens the page.
    Windows,
}

/// A command that shows one notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesktopCommand {
    /// The program, by its whole path.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables that the program gets in addition to those of the daemon.
    pub variables: Vec<(&'static str, String)>,
}

/// The program of macOS that runs a line of AppleScript.
const OSASCRIPT: &str = "/usr/bin/osascript";

/// The path of PowerShell below the folder of Windows.
const POWERSHELL: &str = r"System32\WindowsPowerShell\v1.0\powershell.exe";

/// The script that shows a toast, whose texts are nodes of text, and never markup. The name is PowerShell's own: programs that were not
/// installed have none, and Windows shows no toast without a name.
const TOAST: &str = r"
$ErrorActionPreference = 'Stop'
[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $xml.GetElementsByTagName('text')
[void]$texts.Item(0).AppendChild($xml.CreateTextNode($env:PROVOST_NOTICE_TITLE))
[void]$texts.Item(1).AppendChild($xml.CreateTextNode($env:PROVOST_NOTICE_TEXT))
if ($env:PROVOST_NOTICE_LINK) {
  $toast = $xml.GetElementsByTagName('toast').Item(0)
  $toast.SetAttribute('activationType', 'protocol')
  $toast.SetAttribute('launch', $env:PROVOST_NOTICE_LINK)
}
$name = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\WindowsPowerShell\v1.0\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($name).Show([Windows.UI.Notifications.ToastNotification]::new($xml))
";

impl DesktopSystem {
    /// Returns this system; `None` on any other system.
    pub fn here() -> Option<Self> {
        match std::env::consts::OS {
            "macos" => Some(Self::MacOs),
            "windows" => Some(Self::Windows),
            _ => None,
        }
    }

    /// Returns the command that shows a notice. `folder` is the folder of Windows, and unused on macOS.
    pub fn command(self, folder: &str, title: &str, text: &str, link: Option<&str>) -> DesktopCommand {
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        match self {
            Self::MacOs => DesktopCommand {
                program: OSASCRIPT.into(),
                args: words(&[
                    "-e",
                    "on run argv",
                    "-e",
                    "display notification (item 2 of argv) with title (item 1 of argv)",
                    "-e",
                    "end run",
                    title,
                    text,
                ]),
                variables: Vec::new(),
            },
            Self::Windows => DesktopCommand {
                program: format!(r"{}\{POWERSHELL}", folder.trim_end_matches('\\')),
                args: words(&["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", TOAST]),
                variables: vec![
                    ("PROVOST_NOTICE_TITLE", title.to_owned()),
                    ("PROVOST_NOTICE_TEXT", text.to_owned()),
                    ("PROVOST_NOTICE_LINK", link.unwrap_or_default().to_owned()),
                ],
            },
        }
    }
}
