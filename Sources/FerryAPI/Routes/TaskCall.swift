package import FerryCore

/// What may be asked of a task by its id.
package enum TaskVerb: Hashable, Sendable {
    /// `DELETE /task/{taskid}`.
    case stop
    /// `GET /task/schedule/{taskid}`.
    case schedule
    /// `DELETE /task/schedule/{taskid}`.
    case cancel

    /// The call that a path below `/v2/{appId}/task` names, with its methods.
    static func find(
        _ path: [String], _ count: Int, _ method: HTTPMethod
    ) -> (call: APIRoute.Call, methods: APIRouter.Methods)? {
        switch count {
        case 5 where path[3] == "schedule" && path[4] != "":
            (.task(method == .delete ? .cancel : .schedule, task: path[4]), .getOrDelete)
        case 4 where path[3] != "" && path[3] != "schedule": (.task(.stop, task: path[3]), .one(.delete))
        default: nil
        }
    }
}

/// A call about one task, read.
package enum TaskCall: Hashable, Sendable {
    /// Of what is not delivered yet nothing is sent any more.
    case stop(TaskID)
    /// When a scheduled task is released, or what became of it.
    case schedule(TaskID)
    /// A scheduled task is not to be released.
    case cancel(TaskID)

    static func read(_ verb: TaskVerb, _ text: String) -> Result<TaskCall, APIError> {
        guard let task = TaskID(text) else {
            if verb != .stop {
                return .failure(
                    .scheduleInvalid("\(Excerpt.quoted(text)) is not a task's id as a push answers it"))
            }
            return .failure(.invalid("taskid", "\(Excerpt.quoted(text)) is not a task's id as a push answers it"))
        }
        switch verb {
        case .stop: return .success(.stop(task))
        case .schedule: return .success(.schedule(task))
        case .cancel: return .success(.cancel(task))
        }
    }
}

/// What such a call is answered with.
package enum TaskAnswer: Hashable, Sendable {
    /// Nothing of it is sent any more.
    case stopped
    case cancelled
    case schedule(ScheduleView)

    func writeData(to writer: inout JSONWriter) {
        switch self {
        case .stopped, .cancelled: break
        case .schedule(let view):
            writer.name("data")
            view.write(to: &writer)
        }
    }
}

/// A scheduled task, as the API tells of it.
package struct ScheduleView: Hashable, Sendable {
    package enum State: Hashable, Sendable { case waiting, released, cancelled, failed }

    package let task: TaskID
    package let state: State
    package let createdAt: Instant
    package let releaseAt: Instant
    /// What it is to send; empty once it does not wait any more.
    package let payload: [UInt8]

    package init(task: TaskID, state: State, createdAt: Instant, releaseAt: Instant, payload: [UInt8]) {
        self.task = task
        self.state = state
        self.createdAt = createdAt
        self.releaseAt = releaseAt
        self.payload = payload
    }

    /// Of GeTui's clients one kind reads `status`, the other `send_result`: both are there.
    private var words: (status: String, result: String) {
        switch state {
        case .waiting: ("waiting", "do_not_send")
        case .released: ("success", "send_success")
        case .cancelled: ("deleted", "has_delete")
        case .failed: ("failed", "send_failed")
        }
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.name(plain: { task.append(to: &$0) })
        writer.beginObject()
        writer.member("create_time", String(createdAt.milliseconds))
        writer.member("push_time", String(releaseAt.milliseconds))
        writer.member("status", words.status)
        writer.member("send_result", words.result)
        writer.member("transmission_content", String(decoding: payload, as: UTF8.self))
        writer.endObject()
        writer.endObject()
    }
}

extension APIError {
    /// 22001: what was scheduled has become a task, or could not.
    package static func scheduleRun(_ task: TaskID) -> APIError {
        APIError(code: 22_001, message: "the scheduled task \(task) has already run")
    }

    /// 22002 with any wording.
    package static func scheduleInvalid(_ why: String) -> APIError {
        APIError(code: 22_002, message: "the scheduled task or its time is invalid: \(why)")
    }

    /// 22002: none of this app.
    package static func scheduleUnknown(_ task: TaskID) -> APIError {
        .scheduleInvalid("this app has no scheduled task \(task), or it is over for long")
    }

    /// 22002: it is about to be released.
    package static func scheduleTooLate(_ task: TaskID) -> APIError {
        .scheduleInvalid("\(task) is released within a minute: stop it with DELETE /task/\(task)")
    }

    /// No such task, or another app's: nobody learns which.
    package static func taskUnknown(_ task: TaskID) -> APIError {
        .invalid("taskid", "this app has no task \(task), or it is over for long")
    }
}
