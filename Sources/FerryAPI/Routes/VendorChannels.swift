/// `push_channel.android` and `push_channel.harmony`: channels that this gateway does not have. Their form is checked, so that
/// a mistake shows here and not with another provider, and they change nothing.
enum VendorChannels {
    static func check(_ channel: FieldReader) throws(APIError) {
        if let android = try channel.object("android", at: "push_channel.android"),
            let ups = try android.object("ups", at: "push_channel.android.ups")
        {
            let parts = [
                try ups.object("notification", at: "push_channel.android.ups.notification") != nil,
                try ups.value("transmission") != nil,
                try ups.object("revoke", at: "push_channel.android.ups.revoke") != nil,
            ]
            guard parts.count(where: { $0 }) <= 1 else {
                throw .badParameter(
                    "push_channel.android.ups: please choose one of notification and transmission and revoke")
            }
            _ = try ups.object("options", at: "push_channel.android.ups.options")
        }
        if let harmony = try channel.object("harmony", at: "push_channel.harmony") {
            let parts = [
                try harmony.object("notification", at: "push_channel.harmony.notification") != nil,
                try harmony.value("transmission") != nil, try harmony.value("custom") != nil,
                try harmony.object("revoke", at: "push_channel.harmony.revoke") != nil,
            ]
            guard parts.count(where: { $0 }) <= 1 else {
                throw .badParameter(
                    "push_channel.harmony: please choose one of notification and transmission and custom and revoke")
            }
        }
    }
}
